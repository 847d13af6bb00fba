"""How long jobs report their progress."""

from collections.abc import Callable, Iterable
from typing import Any

Track = Callable[[Iterable[int], int], Iterable[int]]
"""Shows progress: wraps the block numbers, given how many there are."""

Report = Callable[[str, tuple[int, int], dict[str, Any]], None]
"""Told after every piece of work: the stage, how much is done of how much, and the metrics."""

Say = Callable[[str], None]
"""Tells people something that they should know."""

Watch = Callable[[int, int, int, int, float | None], None]
"""Told about once a second: cells done, cells in all, chains under way, cells failed, seconds left if known."""
