"""The three families of the paper, one parametrisation per file: GD++ ⊂ DIAG ⊂ FULL."""

from lintra.models.adapters import Rescaled, Shrunk, UnitBlind
from lintra.models.base import AbstractModel, ImplicitModel
from lintra.models.damping import Divisors
from lintra.models.diagonal import Diagonal
from lintra.models.families import FAMILIES
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus

__all__ = [
    "FAMILIES",
    "AbstractModel",
    "Diagonal",
    "Divisors",
    "Full",
    "GDPlusPlus",
    "ImplicitModel",
    "Rescaled",
    "Shrunk",
    "UnitBlind",
]
