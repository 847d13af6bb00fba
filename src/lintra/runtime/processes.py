"""Processes of one thread each as an executor, and the number of cores."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

_spawn = multiprocessing.get_context("spawn")


def num_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has.

    >>> num_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def finished(
    futures: Collection[Future], track: Callable[[Iterable[int], int], Iterable[int]] | None = None
) -> Iterator[Future]:
    """Futures as they end, with progress."""
    ended, numbers = as_completed(futures), range(len(futures))
    for _ in numbers if track is None else track(numbers, len(futures)):
        yield next(ended)


class WorkerDiedError(Exception):
    """A process ended without a result, perhaps killed by the system for lack of memory."""


class Processes(ThreadPoolExecutor):
    """Runs functions in fresh processes, so many at a time. Leaving it by an exception ends them at once.

    Arguments:
        workers: How many at a time.
    """

    def __init__(self, workers: int):
        super().__init__(workers, thread_name_prefix="lintra-sweep", initializer=_block_interrupts)
        self._children: set[Any] = set()
        self._ended = threading.Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function in a process of its own."""
        return super().submit(self._apart, fn, args, kwargs)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool | None:
        """Wait for all work, or end it."""
        if kind is not None:
            self._ended.set()
            self.shutdown(wait=False, cancel_futures=True)
            for child in list(self._children):
                child.kill()
        self.shutdown(wait=True)
        return None

    def _apart(self, function: Callable[..., Any], arguments: tuple, options: dict[str, Any]) -> Any:
        receiver, sender = _spawn.Pipe(duplex=False)
        child = _spawn.Process(target=_work, args=(sender, function, arguments, options), daemon=True)
        child.start()
        self._children.add(child)
        if self._ended.is_set():  # while it was being started
            child.kill()
        sender.close()
        try:
            worked, result = receiver.recv()
        except EOFError:
            child.join()
            raise WorkerDiedError(f"exit code {child.exitcode}") from None
        finally:
            self._children.discard(child)
        child.join()
        if not worked:
            raise result
        return result


def _block_interrupts() -> None:
    """Keep Ctrl-C from this thread and from the processes that it starts: it is meant for the main thread alone.

    A new process inherits the mask, and so it cannot be interrupted while it is still importing.
    """
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        resource_tracker.ensure_running()  # whose start would unblock interrupts in this thread again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _work(sender: Connection, function: Callable[..., Any], arguments: tuple, options: dict[str, Any]) -> None:
    """Do the work; end with the process that started this one, and not by an interrupt that is meant for it."""
    os.environ["NPROC"] = "1"  # threads of XLA, which has none yet
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
