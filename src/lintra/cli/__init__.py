"""The command line: thin verbs over the library."""

from lintra.cli import bench, evaluate, explain, explore, report, solve, sweep, theory, train, zoo
from lintra.cli.app import app, main

__all__ = [
    "app",
    "bench",
    "evaluate",
    "explain",
    "explore",
    "main",
    "report",
    "solve",
    "sweep",
    "theory",
    "train",
    "zoo",
]
