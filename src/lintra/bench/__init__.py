"""Speed: our way and a reference side by side, and what our way costs as a problem grows."""

from lintra.bench.cases import CASES, THREADED, Sides
from lintra.bench.costs import costs, draw
from lintra.bench.timing import run, use_one_processor

__all__ = ["CASES", "THREADED", "Sides", "costs", "draw", "run", "use_one_processor"]
