"""Sweeps: grids of models, trained in processes or on a cluster, each model once."""

from lintra.sweep.chain import Failure, train_cell, train_chain
from lintra.sweep.grid import GRIDS, Cell, Chain, chain, shard
from lintra.sweep.scheduler import run_sweep
from lintra.sweep.store import Store

__all__ = [
    "GRIDS",
    "Cell",
    "Chain",
    "Failure",
    "Store",
    "chain",
    "run_sweep",
    "shard",
    "train_cell",
    "train_chain",
]
