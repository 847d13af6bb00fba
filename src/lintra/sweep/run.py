"""Running a sweep: chains go to an executor, which is a pool of processes here or a cluster elsewhere.

A worker may die at any moment. A pool of processes breaks then; the chains that are not complete go to a new one,
and if that happens again, every chain gets a pool of its own, so that what kills its process kills nothing else.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from pathlib import Path

from lintra.sweep.chain import Failure, train_chain
from lintra.sweep.grid import Cell, Chain, total_cost
from lintra.sweep.store import Store

_LOOK = 1.0  # seconds between two looks at the store


Watch = Callable[[int, int, int, int, float | None], None]
"""Told about once a second: cells done, cells in all, running, failed, and the seconds left, if known."""

Executors = Callable[[int], Executor]
"""Makes an executor with at most so many workers."""


def run(chains: list[Chain], folder: Path, executors: Executors, *, workers: int, watch: Watch) -> list[Failure]:
    """Train all chains that are not complete, and return what failed."""
    store = Store(folder)
    store.check()
    clock = _Clock([cell for chain in chains for cell in chain], store)
    failures: list[Failure] = []
    for attempt in range(3):
        waiting = _incomplete(chains, store, failures)
        groups = [waiting] if attempt < 2 else [[chain] for chain in waiting]
        for group in filter(None, groups):
            with executors(min(workers, len(group))) as executor:
                ordered = sorted(group, key=total_cost, reverse=True)
                futures = {executor.submit(train_chain, chain, str(folder)): chain for chain in ordered}
                for future in _as_completed(futures):
                    watch(*clock.look(len(failures), workers))
                    if future is not None:
                        failures += _result(future, futures[future], store, last=attempt == 2)
    watch(*clock.look(len(failures), 0))
    return failures


def _incomplete(chains: list[Chain], store: Store, failures: list[Failure]) -> list[Chain]:
    """Chains with cells that are neither in the store nor known to fail."""
    failed = {failure.cell for failure in failures}
    return [chain for chain in chains if any(cell not in failed for cell in store.missing(chain))]


def _result(future: Future, chain: Chain, store: Store, *, last: bool) -> list[Failure]:
    error = CancelledError() if future.cancelled() else future.exception()
    if error is None:
        return future.result()
    if isinstance(error, OSError):
        raise error
    if not last:
        return []  # it will be tried again
    kind = "its process died" if isinstance(error, BrokenExecutor) else f"{type(error).__name__}: {error}"
    first, *others = store.missing(chain)
    after = f"it comes after {first.name}, which failed"
    return [Failure(first, kind), *(Failure(cell, after) for cell in others)]


def _as_completed(futures: dict[Future, Chain]) -> Iterator[Future | None]:
    """Futures as they are done, and nothing now and then."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=_LOOK, return_when=FIRST_COMPLETED)
        yield from done or (None,)


class _Clock:
    """Estimates the time left from what was done since it was made."""

    def __init__(self, cells: list[Cell], store: Store):
        self._cells, self._store = cells, store
        self._missing = total_cost(store.missing(cells))
        self._begun = time.monotonic()

    def look(self, failed: int, workers: int) -> tuple[int, int, int, int, float | None]:
        missing = self._store.missing(self._cells)
        done, left = self._missing - total_cost(missing), total_cost(missing)
        seconds = (time.monotonic() - self._begun) * left / done if done else None
        running = min(workers, len(missing) - failed)
        return len(self._cells) - len(missing), len(self._cells), running, failed, seconds


def processes(workers: int) -> Executor:
    """A pool of processes on this machine that share its cores."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    with _environment(NPROC=str(threads)):  # XLA makes as many threads as this says
        executor = ProcessPoolExecutor(
            workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
        )
        for future in [executor.submit(_nothing) for _ in range(workers)]:
            future.result()  # processes are made when there is work for them
    return executor


def _begin() -> None:
    """End with the process that started this one, and not by an interrupt that is meant for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _nothing() -> None:
    time.sleep(0.2)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
