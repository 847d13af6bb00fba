"""From weights to the algorithm: what a model's numbers mean, what it does, and what it needs."""

from lintra.anatomy.ablation import ablation, without
from lintra.anatomy.account import Account, account
from lintra.anatomy.behaviour import behaviour, beliefs, believed_noise
from lintra.anatomy.gauge import Equivalence, action, balanced, compare, transformed
from lintra.anatomy.weights import NAMES, Shape, omegas, shapes

__all__ = [
    "NAMES",
    "Account",
    "Equivalence",
    "Shape",
    "ablation",
    "account",
    "action",
    "balanced",
    "behaviour",
    "beliefs",
    "believed_noise",
    "compare",
    "omegas",
    "shapes",
    "transformed",
    "without",
]
