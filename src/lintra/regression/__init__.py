"""Regressions of your own: one at a time as in scikit-learn, or very many at once."""

from lintra.regression.chunked import solve
from lintra.regression.solver import Solver
from lintra.regression.soundness import UnsoundWarning

__all__ = [
    "Solver",
    "UnsoundWarning",
    "solve",
]
