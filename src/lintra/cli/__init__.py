"""The command line: thin verbs over the library."""

from lintra.cli import anatomy, bench, measure, reproduce, solve, theory, train
from lintra.cli.base import app, main

__all__ = ["anatomy", "app", "bench", "main", "measure", "reproduce", "solve", "theory", "train"]
