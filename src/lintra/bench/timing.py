"""Clocks: two sides alternating in one process, so that both see the same machine."""

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


def run(name: str, repetitions: int = 15) -> dict[str, Any]:
    """Time one case: the median CPU time of each side, alternating, after a first run of both.

    Cases about threads are timed by the wall clock, in a process of their own that may use the processors
    this one may, and the shortest time counts, as other work on the machine can only add to it.
    """
    if name not in CASES:
        raise ValueError(f"`case` must be one of {', '.join(CASES)}, got {name!r}.")
    if name in THREADED:
        return _in_own_process(name)
    return _row(name, alternate(CASES[name](), repetitions), statistics.median)


def use_one_processor() -> str | None:
    """Keep this process, and the threads XLA has yet to make, on one processor; if that fails, say why."""
    if not hasattr(os, "sched_setaffinity"):
        return (
            "this system has no way to keep a process on one processor, so XLA may use several threads; "
            "CPU times still count them all."
        )
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    return None


def alternate(
    sides: tuple[Side, ...],
    repetitions: int,
    clock: Callable[[], float] = time.process_time,
    fill: float = 10.0,
) -> list[list[float]]:
    """Milliseconds of a call, for every side and repetition, each the mean of calls that fill so many ms.

    A single short call would mostly measure a cold start.
    """
    counts = [_calls(side, clock, fill) for side in sides]
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(repetitions):
        for side, calls, record in zip(sides, counts, times, strict=True):
            time.sleep(0.02)  # the other side's memory is given back after its result is there
            record.append(_milliseconds(side, calls, clock))
    return times


def _calls(side: Side, clock: Callable[[], float], fill: float) -> int:
    jax.block_until_ready(side())
    return math.ceil(fill / max(_milliseconds(side, 1, clock), 0.01))


def _milliseconds(side: Side, calls: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(calls):
        jax.block_until_ready(side())
    return 1e3 * (clock() - start) / calls


def _row(name: str, times: list[list[float]], choose: Callable[[list[float]], float]) -> dict[str, Any]:
    ours, reference = map(choose, times)
    return {"case": name, "ours_ms": ours, "reference_ms": reference, "ratio": reference / ours}


def run_threaded(name: str, repetitions: int = 150) -> dict[str, Any]:
    """Time a case about threads in this process, whose XLA must not have started with fewer."""
    return _row(name, alternate(CASES[name](), repetitions, time.perf_counter, fill=1.0), min)


_CHILD = """
import json, sys
from lintra.bench.timing import run_threaded
print(json.dumps(run_threaded(sys.argv[1])))
"""


def _in_own_process(name: str) -> dict[str, Any]:
    """XLA's threads are made once and stay on the processors of their first day, so a fresh process is needed."""
    child = subprocess.run([sys.executable, "-c", _CHILD, name], capture_output=True, text=True)
    if child.returncode:
        raise ValueError(f"`{name}` could not be measured: {child.stderr.strip().splitlines()[-1]}")
    return json.loads(child.stdout)
