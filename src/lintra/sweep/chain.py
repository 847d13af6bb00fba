"""Training of one chain of a sweep, cell by cell in one process."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from lintra.kernel.precision import in_64_bits
from lintra.runtime.progress import LastMetrics
from lintra.sweep.grid import Cell, Chain
from lintra.sweep.store import Store
from lintra.training.checkpoints import RunFolder, versions
from lintra.training.loop import run_stages, training_key
from lintra.training.stage import Cache
from lintra.training.warm_starts import WarmStarts

_LONG = 300.0  # seconds of training from which a cell has checkpoints
_INTERVAL = 60.0  # seconds between two of them
_RUN_FIELDS = ("stage", "name", "seconds")  # of the metrics of a run folder, which are not of the model


@dataclass(frozen=True)
class Failure:
    """A cell that could not be trained, and the reason."""

    cell: Cell
    reason: str


def train_chain(chain: Chain, folder: str, skipped: tuple[Failure, ...] = ()) -> list[Failure]:
    """Train the cells that are not in the store yet.

    If a cell fails or is skipped, the cells that start from it fail too. If the store cannot be written to, all
    remaining cells fail.

    Args:
        chain: The cells.
        folder: Folder of the store, which exists.
        skipped: Cells that are not trained, with the reasons.

    Returns:
        The cells that failed, the skipped ones included.
    """
    store, cache = Store(Path(folder)), {}
    reasons = {failure.cell: failure.reason for failure in skipped}
    for position, cell in enumerate(chain):
        if cell in reasons or store.holds(cell):
            continue
        failed_parents = [parent.name for parent in cell.parents().values() if parent in reasons]
        if failed_parents:
            reasons[cell] = f"it starts from {failed_parents[0]}, which failed"
            continue
        try:
            with in_64_bits():
                train_cell(cell, store, cache)
        except OSError as error:
            reason = f"the store cannot be used: {error}"
            reasons |= {other: reason for other in store.missing(chain[position:]) if other not in reasons}
            break
        except Exception as error:
            reasons[cell] = f"{type(error).__name__}: {error}"
    return [Failure(cell, reason) for cell, reason in reasons.items()]


def train_cell(cell: Cell, store: Store, cache: Cache | None = None) -> None:
    """Train a cell and store it, after those of its parents that are not in the store."""
    parents = cell.parents()
    for parent in parents.values():
        if not store.holds(parent):
            train_cell(parent, store, cache)
    warm_starts = WarmStarts(**{name: store.load(parent) for name, parent in parents.items()})
    with store.lock(cell):
        if store.holds(cell):
            return  # another process has trained it meanwhile
        started = time.monotonic()
        stages = cell.recipe.stages(cell.spec, training_key(cell.seed), warm_starts)
        run = _run_folder(cell, store)
        metrics = LastMetrics(values={} if run is None else run.last_metrics)
        try:
            model = run_stages(stages, warm_starts, cache, run=run, progress=metrics)[stages[-1].name]
        finally:
            if run is not None:
                run.close()
        values = {name: value for name, value in metrics.values.items() if name not in _RUN_FIELDS}
        store.write(cell, model, values, time.monotonic() - started + (0.0 if run is None else run.seconds))
        if run is not None:
            shutil.rmtree(run.folder, ignore_errors=True)


def _run_folder(cell: Cell, store: Store) -> RunFolder | None:
    """A folder for checkpoints of a cell that takes long, so that it is resumed. `None` for others."""
    if cell.cost < _LONG or cell.parents():  # warm starts are not stored in a run folder
        return None
    return RunFolder(store.folder / ".runs" / cell.digest, cell.content(), versions(), interval=_INTERVAL)
