"""Times of two sides that alternate in one process, so that both meet the same load of the machine."""

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax

from lintra.bench.cases import CASES, THREADED

Side = Callable[[], Any]


def time_case(name: str, *, num_repetitions: int = 15) -> dict[str, Any]:
    """Time one case: the median CPU time of each side, alternating, after a first call of both.

    Cases about threads are timed by the wall clock, in a separate process that may use the same processors. There
    the shortest time counts, since other work on the machine can only add to it.

    Args:
        name: A name of `CASES`.
        num_repetitions: Number of measurements of each side. Default 15. Cases about threads have 150.

    Returns:
        A row with both times in ms, and their ratio.

    Raises:
        ValueError: If there is no such case, or the separate process fails.
    """
    if name not in CASES:
        raise ValueError(f"`case` must be one of {', '.join(CASES)}, got {name!r}.")
    if name in THREADED:
        return _in_own_process(name)
    return _row(name, alternate(CASES[name](), num_repetitions), statistics.median)


def use_one_processor() -> str | None:
    """Keep this process, and threads that XLA makes later, on one processor.

    Returns:
        `None`, or a message if the system cannot do it.
    """
    if not hasattr(os, "sched_setaffinity"):
        return (
            "this system has no way to keep a process on one processor, so XLA may use several threads; "
            "CPU times still count them all."
        )
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    return None


def alternate(
    sides: tuple[Side, ...],
    num_repetitions: int,
    clock: Callable[[], float] = time.process_time,
    fill_ms: float = 10.0,
) -> list[list[float]]:
    """Time sides that alternate.

    Args:
        sides: Functions without arguments.
        num_repetitions: Number of measurements of each side.
        clock: Gives seconds. Default: CPU time of this process.
        fill_ms: A measurement is the mean of calls that take about this long together, since a single short call
            would mostly measure a cold start. Default 10.

    Returns:
        Milliseconds of a call, for each side and repetition.
    """
    num_calls = [_num_calls(side, clock, fill_ms) for side in sides]
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(num_repetitions):
        for side, calls, record in zip(sides, num_calls, times, strict=True):
            time.sleep(0.02)  # the other side's memory is returned after its result is there
            record.append(_milliseconds(side, calls, clock))
    return times


def _num_calls(side: Side, clock: Callable[[], float], fill_ms: float) -> int:
    jax.block_until_ready(side())
    return math.ceil(fill_ms / max(_milliseconds(side, 1, clock), 0.01))


def _milliseconds(side: Side, num_calls: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(num_calls):
        jax.block_until_ready(side())
    return 1e3 * (clock() - start) / num_calls


def _row(name: str, times: list[list[float]], summary: Callable[[list[float]], float]) -> dict[str, Any]:
    ours, reference = map(summary, times)
    return {"case": name, "ours_ms": ours, "reference_ms": reference, "ratio": reference / ours}


def time_threaded(name: str, *, num_repetitions: int = 150) -> dict[str, Any]:
    """Time a case about threads in this process, whose XLA must not have started with fewer threads."""
    return _row(name, alternate(CASES[name](), num_repetitions, time.perf_counter, fill_ms=1.0), min)


_CHILD = """
import json, sys
from lintra.bench.timing import time_threaded
print(json.dumps(time_threaded(sys.argv[1])))
"""


def _in_own_process(name: str) -> dict[str, Any]:
    """Time a case in a fresh process, since XLA's threads stay on the processors on which they were made."""
    child = subprocess.run([sys.executable, "-c", _CHILD, name], capture_output=True, text=True)
    if child.returncode:
        raise ValueError(f"`{name}` could not be measured: {child.stderr.strip().splitlines()[-1]}")
    return json.loads(child.stdout)
