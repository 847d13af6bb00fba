"""One chain of a sweep, trained cell by cell in one place."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from lintra.runtime.cache import keep_compiled_programs
from lintra.sweep.grid import Cell, Chain
from lintra.sweep.store import Store
from lintra.training.loop import follow
from lintra.training.stage import Shelf


@dataclass(frozen=True)
class Failure:
    """A cell that could not be trained, and why."""

    cell: Cell
    sentence: str


def train_chain(chain: Chain, folder: str, given_up: tuple[Failure, ...] = ()) -> list[Failure]:
    """Train what is not in the store yet, and return what failed.

    A cell that fails, or that was given up before, takes with it only those that start from it; a store that
    cannot be written to takes the rest of the chain.

    Arguments:
        chain: The cells.
        folder: The store, which is there.
        given_up: Cells that are not tried.
    """
    os.environ.setdefault("NPROC", "1")  # threads of XLA, if it has none yet; their number shows in the last bits
    keep_compiled_programs()
    store, shelf = Store(Path(folder)), {}
    failures = {failure.cell: failure.sentence for failure in given_up}
    for place, cell in enumerate(chain):
        if cell in failures or store.holds(cell):
            continue
        lost = [parent.name for parent in cell.parents().values() if parent in failures]
        if lost:
            failures[cell] = f"it starts from {lost[0]}, which failed"
            continue
        try:
            train_cell(cell, store, shelf)
        except OSError as error:
            sentence = f"the store cannot be used: {error}"
            failures |= {other: sentence for other in store.missing(chain[place:]) if other not in failures}
            break
        except Exception as error:
            failures[cell] = f"{type(error).__name__}: {error}"
    return [Failure(cell, sentence) for cell, sentence in failures.items()]


def train_cell(cell: Cell, store: Store, shelf: Shelf | None = None) -> None:
    """Train a cell and keep it, and its parents first where they are not in the store."""
    known = {}
    for name, parent in cell.parents().items():
        if not store.holds(parent):
            train_cell(parent, store, shelf)
        known[name] = store.load(parent)
    with store.lock(cell):
        if store.holds(cell):
            return  # someone else was quicker
        begun, last = time.monotonic(), {}

        def keep(stage: str, done: tuple[int, int], metrics: dict[str, Any]) -> None:
            last.update(metrics)

        key = jax.random.split(jax.random.key(cell.seed))[0]
        stages = cell.recipe.stages(cell.task, key, tuple(known))
        model = follow(stages, known, shelf, report=keep)[stages[-1].name]
        store.write(cell, model, last, time.monotonic() - begun)
