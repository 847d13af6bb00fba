"""A grid of models, trained on this machine or on a cluster, each of them once."""

from lintra.sweep.chain import Failure, train_cell, train_chain
from lintra.sweep.grid import GRIDS, Cell, Chain, chain, shard
from lintra.sweep.runner import run
from lintra.sweep.store import Store

__all__ = [
    "GRIDS",
    "Cell",
    "Chain",
    "Failure",
    "Store",
    "chain",
    "run",
    "shard",
    "train_cell",
    "train_chain",
]
