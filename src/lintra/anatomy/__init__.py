"""From weights to the algorithm: what a model's numbers mean, what it does, and what it needs."""

from lintra.anatomy.ablation import ablation, without
from lintra.anatomy.behaviour import behaviour, beliefs
from lintra.anatomy.canonical import action, balanced
from lintra.anatomy.equivalence import Equivalence, compare, transformed
from lintra.anatomy.explanation import Account, account
from lintra.anatomy.structure import NAMES, Shape, omegas, shapes
from lintra.baselines.oracle import believed_noise

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
