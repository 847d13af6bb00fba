"""How many cores there are to work with."""

import os


def count() -> int:
    """Cores that this process may use, which can be fewer than the machine has.

    >>> count() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
