"""The command line: thin verbs over the library."""

from lintra.cli import anatomy, bench, explore, measure, reproduce, solve, theory, train
from lintra.cli.base import app, main

__all__ = ["anatomy", "app", "bench", "explore", "main", "measure", "reproduce", "solve", "theory", "train"]
