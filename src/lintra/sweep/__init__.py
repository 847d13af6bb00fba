"""A grid of models, trained on this machine or on a cluster, each of them once."""

from lintra.sweep.chain import Failure, train_cell, train_chain
from lintra.sweep.cluster import cluster
from lintra.sweep.grid import GRIDS, Cell, Chain, chain, shard
from lintra.sweep.processes import Processes, finished
from lintra.sweep.run import run
from lintra.sweep.store import Store

__all__ = [
    "GRIDS",
    "Cell",
    "Chain",
    "Failure",
    "Processes",
    "Store",
    "chain",
    "cluster",
    "finished",
    "run",
    "shard",
    "train_cell",
    "train_chain",
]
