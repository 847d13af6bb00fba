"""What a long job tells its caller meanwhile: `Progress`, the one protocol for all of them."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


class Progress:
    """Told how far a job is. This class ignores everything; a subclass shows it.

    A job calls `start` once for each of its parts, then `update` as work is done, and `message` at any time.

    >>> class Printed(Progress):
    ...     def update(self, done, **fields):
    ...         print(done, fields)
    >>> for name in track(["a", "b"], Printed(), "letters"):
    ...     pass
    1 {}
    2 {}
    """

    def start(self, text: str, total: int | None = None) -> None:
        """A part of the job begins.

        Args:
            text: What it is.
            total: Number of units of work. `None` (default): not known.
        """

    def update(self, done: int, **fields: Any) -> None:
        """Work was done.

        Args:
            done: Number of units done so far, in this part.
            **fields: Values to show beside it, such as a loss.
        """

    def message(self, text: str) -> None:
        """Something that people should know, as a sentence."""


SILENT = Progress()
"""The default of every long function: shows nothing."""


class LastMetrics(Progress):
    """Keeps the last value of every field, and passes everything on.

    Args:
        progress: Told the same. Default: not shown.
        values: Fields by name to begin with. `None` (default): none.

    Attributes:
        values: The last value of every field by name.
    """

    def __init__(self, progress: Progress = SILENT, values: dict[str, Any] | None = None):
        self._progress, self.values = progress, dict(values or {})

    def start(self, text: str, total: int | None = None) -> None:
        """Pass it on."""
        self._progress.start(text, total)

    def update(self, done: int, **fields: Any) -> None:
        """Keep the fields, and pass them on."""
        self.values |= fields
        self._progress.update(done, **fields)

    def message(self, text: str) -> None:
        """Pass it on."""
        self._progress.message(text)


def track(items: Sequence[Item], progress: Progress, text: str) -> Iterator[Item]:
    """Yield the items as one part of a job, and tell `progress` after each of them."""
    progress.start(text, len(items))
    for done, item in enumerate(items, 1):
        yield item
        progress.update(done)
