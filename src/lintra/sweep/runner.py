"""Running a sweep: chains go to an executor, which is processes here or a cluster elsewhere.

A worker may die at any moment. Its chain is then given out again, and goes on after its last stored cell. A cell
at which workers have died twice is given up, with those that start from it.
"""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from pathlib import Path

from lintra.runtime.progress import Watch
from lintra.sweep.chain import Failure, train_chain
from lintra.sweep.grid import Cell, Chain, total_cost
from lintra.sweep.store import Store

_LOOK = 1.0  # seconds between two looks at the store
_DEATHS = 2  # at a cell, after which it is given up


def run(
    chains: list[Chain],
    folder: Path,
    executor: Executor,
    *,
    watch: Watch,
    say: Callable[[str], None] = lambda sentence: None,
) -> list[Failure]:
    """Train all cells that are not in the store, and return those that are not there in the end, and why.

    Arguments:
        chains: The cells.
        folder: The store, made if it is not there.
        executor: Where chains are trained.
        watch: Told about once a second how far it is.
        say: Told about every file of the store that is damaged and trained again.
    """
    store = Store(folder, say)
    store.prepare()
    chains = sorted(dict.fromkeys(chains), key=total_cost, reverse=True)
    everything = list(dict.fromkeys(cell for chain in chains for cell in chain))
    clock, failures, deaths = _Clock(everything, store), {}, Counter()
    futures: dict[Future, Chain] = {}

    def submit(chain: Chain) -> None:
        given_up = tuple(Failure(cell, failures[cell]) for cell in chain if cell in failures)
        if any(cell not in failures for cell in store.missing(chain)):
            futures[executor.submit(train_chain, chain, str(folder), given_up)] = chain

    for chain in chains:
        submit(chain)
    while futures:
        done, _ = wait(futures, timeout=_LOOK, return_when=FIRST_COMPLETED)
        watch(*clock.look(len(failures), sum(future.running() for future in futures)))
        for future in done:
            chain = futures.pop(future)
            error = CancelledError("the cluster was lost") if future.cancelled() else future.exception()
            if error is None:
                failures |= {failure.cell: failure.sentence for failure in future.result()}
                continue
            left = [cell for cell in store.missing(chain) if cell not in failures]
            if isinstance(error, CancelledError):
                failures |= dict.fromkeys(left, str(error))
            elif left:
                deaths[left[0]] += 1
                if deaths[left[0]] >= _DEATHS:
                    failures[left[0]] = f"its worker died: {error}"
                submit(chain)
    watch(*clock.look(len(failures), 0))
    lost = (
        "its chain ended, but it is not in the store: do all workers share the folder and one version of lintra?"
    )
    return [Failure(cell, failures.get(cell, lost)) for cell in store.missing(everything)]


class _Clock:
    """Estimates the time left from what was done since it was made."""

    def __init__(self, cells: list[Cell], store: Store):
        self._cells, self._store = cells, store
        self._missing = total_cost(store.missing(cells))
        self._begun = time.monotonic()

    def look(self, failed: int, running: int) -> tuple[int, int, int, int, float | None]:
        missing = self._store.missing(self._cells)
        done, left = self._missing - total_cost(missing), total_cost(missing)
        seconds = (time.monotonic() - self._begun) * left / done if done else None
        return len(self._cells) - len(missing), len(self._cells), running, failed, seconds
