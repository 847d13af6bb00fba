"""Runs a sweep: chains are submitted to an executor, of processes on this machine or of a cluster.

A worker may die at any time. Its chain is then submitted again, and resumes after its last stored cell. A cell at
which workers have died twice is skipped, with the cells that start from it.
"""

import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait

from lintra.runtime.progress import SILENT, Progress
from lintra.sweep.chain import Failure, train_chain
from lintra.sweep.grid import Cell, Chain, total_cost
from lintra.sweep.store import Store

_POLL_SECONDS = 1.0  # between two updates of the progress
_MAX_DEATHS = 2  # of workers at a cell, after which it is skipped
_LOST = "its chain ended, but it is not in the store: do all workers share the folder and one version of lintra?"


def run_sweep(
    chains: Iterable[Chain], store: Store, executor: Executor, *, progress: Progress = SILENT
) -> list[Failure]:
    """Train all cells that are not in the store.

    Args:
        chains: The cells.
        store: The store. Its folder is made if it does not exist.
        executor: Where chains are trained, such as a `ProcessExecutor`.
        progress: Told about once a second how many cells are stored (`done`), how many chains are `running`, how
            many cells have `failed`, and how many `seconds_left` there are, or `None`. Default: not shown.

    Returns:
        The cells that are not in the store at the end, with the reasons.
    """
    store.prepare()
    chains = sorted(dict.fromkeys(chains), key=total_cost, reverse=True)
    cells = list(dict.fromkeys(cell for chain in chains for cell in chain))
    ledger, clock = _Ledger(store), _Clock(cells, store)
    futures: dict[Future, Chain] = {}

    def submit(chain: Chain) -> None:
        if ledger.remaining(chain):
            futures[executor.submit(train_chain, chain, str(store.folder), ledger.skipped(chain))] = chain

    progress.start("cells", len(cells))
    for chain in chains:
        submit(chain)
    while futures:
        finished, _ = wait(futures, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        clock.tell(progress, running=sum(future.running() for future in futures), failed=len(ledger.reasons))
        for future in finished:
            chain = futures.pop(future)
            if ledger.take_in(chain, future):
                submit(chain)
    clock.tell(progress, running=0, failed=len(ledger.reasons))
    return [Failure(cell, ledger.reasons.get(cell, _LOST)) for cell in store.missing(cells)]


class _Ledger:
    """Reasons for which cells have failed, and deaths of workers at cells."""

    def __init__(self, store: Store):
        self._store = store
        self.reasons: dict[Cell, str] = {}
        self._deaths: Counter[Cell] = Counter()

    def remaining(self, chain: Chain) -> list[Cell]:
        """Cells that are neither stored nor failed."""
        return [cell for cell in self._store.missing(chain) if cell not in self.reasons]

    def skipped(self, chain: Chain) -> tuple[Failure, ...]:
        """Cells of a chain that have failed."""
        return tuple(Failure(cell, self.reasons[cell]) for cell in chain if cell in self.reasons)

    def take_in(self, chain: Chain, future: Future) -> bool:
        """Take in how the training of a chain has ended, and return whether to submit the chain again."""
        error = CancelledError("the cluster was lost") if future.cancelled() else future.exception()
        if error is None:
            self.reasons |= {failure.cell: failure.reason for failure in future.result()}
            return False
        remaining = self.remaining(chain)
        if isinstance(error, CancelledError):
            self.reasons |= dict.fromkeys(remaining, str(error))
            return False
        if remaining:  # the worker died, at the first of them
            self._deaths[remaining[0]] += 1
            if self._deaths[remaining[0]] >= _MAX_DEATHS:
                self.reasons[remaining[0]] = f"its worker died: {error}"
        return bool(remaining)


class _Clock:
    """Estimates the time left from the costs of the cells that were trained since it was made."""

    def __init__(self, cells: list[Cell], store: Store):
        self._cells, self._store = cells, store
        self._cost = total_cost(store.missing(cells))
        self._started = time.monotonic()

    def tell(self, progress: Progress, **counts: int) -> None:
        """Update the progress."""
        missing = self._store.missing(self._cells)
        cost_left = total_cost(missing)
        seconds_left = time_left(self._cost - cost_left, cost_left, time.monotonic() - self._started)
        progress.update(len(self._cells) - len(missing), **counts, seconds_left=seconds_left)


def time_left(cost_done: float, cost_left: float, elapsed: float) -> float | None:
    """Estimate the time left from the time that the work so far has taken. `None`: no work was done yet.

    >>> time_left(1.0, 3.0, elapsed=10.0)
    30.0
    """
    return elapsed * cost_left / cost_done if cost_done else None
