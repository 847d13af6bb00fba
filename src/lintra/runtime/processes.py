"""Processes of one thread each as an executor, and the number of cores."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent import futures as concurrent_futures
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from lintra.runtime.progress import SILENT, Progress

_spawn = multiprocessing.get_context("spawn")


def num_cores() -> int:
    """Number of cores that this process may use, which can be fewer than the machine has.

    >>> num_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def as_completed(futures: Collection[Future], progress: Progress = SILENT, text: str = "") -> Iterator[Future]:
    """Yield futures in the order in which they end.

    Args:
        futures: The futures.
        progress: Told about each future that has ended. Default: not shown.
        text: What is done, for `progress`.
    """
    progress.start(text, len(futures))
    for done, future in enumerate(concurrent_futures.as_completed(futures), 1):
        yield future
        progress.update(done)


def prepare_worker() -> None:
    """Make a fresh process ready for work: one thread of XLA, and the compilation cache.

    The number of threads changes the order of sums, and so the last bits of results. XLA reads `NPROC` when it
    starts.
    """
    os.environ["NPROC"] = "1"
    from lintra.runtime.cache import enable_compilation_cache  # imports JAX, which the parent may not need

    enable_compilation_cache()


class WorkerDiedError(Exception):
    """A process ended without a result, perhaps killed by the system for lack of memory."""


class ProcessExecutor(ThreadPoolExecutor):
    """Runs each function in a fresh process of one thread. Leaving it by an exception ends them at once.

    Args:
        num_workers: Largest number of processes at a time.
    """

    def __init__(self, num_workers: int):
        super().__init__(num_workers, thread_name_prefix="lintra-worker", initializer=_block_interrupts)
        self._children: set[Any] = set()
        self._ended = threading.Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function in a process of its own."""
        return super().submit(self._run_in_process, fn, args, kwargs)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool | None:
        """Wait for all work, or end it."""
        if kind is not None:
            self._ended.set()
            self.shutdown(wait=False, cancel_futures=True)
            for child in list(self._children):
                child.kill()
        self.shutdown(wait=True)
        return None

    def _run_in_process(self, function: Callable[..., Any], arguments: tuple, options: dict[str, Any]) -> Any:
        receiver, sender = _spawn.Pipe(duplex=False)
        child = _spawn.Process(target=_work, args=(sender, function, arguments, options), daemon=True)
        child.start()
        self._children.add(child)
        if self._ended.is_set():  # while the process was starting
            child.kill()
        sender.close()
        try:
            succeeded, result = receiver.recv()
        except EOFError:
            child.join()
            raise WorkerDiedError(f"exit code {child.exitcode}") from None
        finally:
            self._children.discard(child)
        child.join()
        if not succeeded:
            raise result
        return result


def _block_interrupts() -> None:
    """Block Ctrl-C in this thread and in the processes that it starts, so that only the main thread handles it.

    A new process inherits the mask, so it cannot be interrupted while it is importing.
    """
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        resource_tracker.ensure_running()  # whose start would unblock interrupts in this thread again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _work(sender: Connection, function: Callable[..., Any], arguments: tuple, options: dict[str, Any]) -> None:
    """Call the function and send its result. This process ends with its parent, and ignores interrupts."""
    prepare_worker()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        message = True, function(*arguments, **options)
    except Exception as error:
        message = False, error
    sender.send(message)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
