"""Regressions on your own data: one at a time as in scikit-learn, or many at once."""

from lintra.regression.chunked import solve
from lintra.regression.solver import Answer, Solver
from lintra.regression.soundness import UnsoundWarning

__all__ = [
    "Answer",
    "Solver",
    "UnsoundWarning",
    "solve",
]
