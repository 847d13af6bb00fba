"""One chain of a sweep, trained cell by cell in one place."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from lintra.compiled import keep_compiled_programs
from lintra.sweep.grid import Cell, Chain
from lintra.sweep.store import Store
from lintra.training import follow
from lintra.training.stage import Shelf


@dataclass(frozen=True)
class Failure:
    """A cell that could not be trained, and why."""

    cell: Cell
    sentence: str


def train_chain(chain: Chain, folder: str) -> list[Failure]:
    """Train what is not in the store yet. A cell that fails takes with it only those that start from it."""
    keep_compiled_programs()
    store, shelf, failures = Store(Path(folder)), {}, {}
    for cell in store.missing(chain):
        lost = [parent.name for parent in cell.parents().values() if parent.name in failures]
        try:
            if lost:
                raise RuntimeError(f"it starts from {lost[0]}, which failed")
            train_cell(cell, store, shelf)
        except OSError:
            raise  # the store cannot be used: there is no point in going on
        except Exception as error:
            failures[cell.name] = Failure(cell, f"{type(error).__name__}: {error}")
    return list(failures.values())


def train_cell(cell: Cell, store: Store, shelf: Shelf | None = None) -> None:
    """Train a cell and keep it, and its parents first where they are not in the store."""
    known = {}
    for name, parent in cell.parents().items():
        if store.missing([parent]):
            train_cell(parent, store, shelf)
        known[name] = store.load(parent)
    begun, last = time.monotonic(), {}

    def keep(stage: str, done: tuple[int, int], metrics: dict[str, Any]) -> None:
        last.update(stage=stage, metrics=metrics)

    key = jax.random.split(jax.random.key(cell.seed))[0]
    stages = cell.recipe.stages(cell.task, key, tuple(known))
    model = follow(stages, known, shelf, report=keep)[stages[-1].name]
    store.write(cell, model, last["metrics"], time.monotonic() - begun)
