"""Interrupts (Ctrl-C) of the command line: one line and exit code 130 at any moment, never a traceback.

Until the command starts, while Python imports, there is nothing to clean up and the process ends at once. While
the command runs, an interrupt raises `KeyboardInterrupt`, so that files and child processes are cleaned up. Python
can raise it only between two of its own steps, so a thread ends the process if XLA is compiling for longer.
"""

import _thread
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

CODE = 130  # 128 + SIGINT, as shells report it
_GRACE = 2.0  # seconds to clean up, after which the process ends anyway
_AGAIN = 0.01  # seconds after which a lost interrupt is repeated
_SHOW_CURSOR = b"\x1b[?25h"  # progress bars hide it
_ending = threading.Lock()
_repeats = threading.Semaphore(0)  # interrupts that are repeated and come from nobody


def is_command() -> bool:
    """Whether this process was started as `lintra …` or `python -m lintra …`."""
    if sys.argv[:1] == ["-m"]:  # the package is imported before Python knows the module's file
        return sys.orig_argv[-len(sys.argv)] == "lintra"
    return bool(sys.argv) and Path(sys.argv[0]).stem == "lintra"


def end_at_once() -> None:
    """Let an interrupt end the process at once, unless interrupts are ignored, as they are in background jobs."""
    if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_now)


@contextmanager
def cleaned_up() -> Iterator[None]:
    """Let interrupts raise `KeyboardInterrupt` inside, and end the process if it takes too long to clean up.

    Outside of a command that has called `end_at_once` it changes nothing.
    """
    if not _in_main_thread() or signal.getsignal(signal.SIGINT) is not _end_now:
        yield
        return
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    threading.Thread(target=_end_when_late, args=(readable,), name="lintra-interrupts", daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hook, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, _end_now)
        signal.set_wakeup_fd(-1)


def end() -> NoReturn:
    """Say that the command was interrupted, and end the process: work may be under way in XLA's threads."""
    if not _ending.acquire(blocking=False):  # another thread is about to end it
        threading.Event().wait()
    os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"lintra: interrupted.\n")
    os._exit(CODE)


def _end_now(*_: Any) -> None:
    end()


def _end_when_late(readable: int) -> None:
    """Wait for an interrupt; end the process at the second one, or when the first one took too long."""
    while signal.SIGINT not in os.read(readable, 1):
        pass
    until = time.monotonic() + _GRACE
    while select.select([readable], [], [], max(until - time.monotonic(), 0.0))[0]:
        if signal.SIGINT in os.read(readable, 1) and not _repeats.acquire(blocking=False):
            break
    end()


def _interrupt_again(unraisable: Any) -> None:
    """Interrupt once more where an interrupt was lost, as in a callback of the garbage collector.

    Not at once: an interrupt inside of this function would be lost, too, and printed with its traceback.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        again = threading.Timer(_AGAIN, _repeat)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(unraisable)


def _repeat() -> None:
    _repeats.release()
    if hasattr(signal, "pthread_kill"):  # which ends a system call, too; not on Windows
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
