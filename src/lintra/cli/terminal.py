"""The terminal: progress bars, tables, and rows as JSON for programs."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rich import box
from rich import progress as rich_progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lintra.runtime.escaping import printable
from lintra.runtime.files import to_json
from lintra.runtime.progress import Progress

_errors = Console(stderr=True)
_LONG = 60  # a cell that may take several lines


class ProgressBar(Progress):
    """Shows a job on the error stream: a bar with the time left on a terminal, and lines now and then in a log.

    Use it as a context, in which the bar is on the screen.

    Args:
        title: What the job is.
        log_every: Seconds between lines where there is no terminal. `None` (default): messages only.
    """

    def __init__(self, title: str, *, log_every: float | None = None):
        self._title, self._log_every, self._logged = title, log_every, -math.inf
        columns = (
            rich_progress.SpinnerColumn(),
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.BarColumn(),
            rich_progress.TextColumn("{task.fields[state]}", markup=False),
            rich_progress.TimeRemainingColumn(),
        )
        self._bar = rich_progress.Progress(
            *columns, console=_errors, transient=True, disable=not _errors.is_terminal
        )
        self._task, self._text, self._total = None, "", None
        self._begun = self._since = time.monotonic()
        self._first: int | None = None  # units that were done at the first update of a part

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, text: str, total: int | None = None) -> None:
        """Show another part of the job."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._text, self._total, self._first = text, total, None
        self._since = time.monotonic()
        self._task = self._bar.add_task(": ".join(filter(None, (self._title, text))), total=total, state="")

    def update(self, done: int, **fields: Any) -> None:
        """Show how much of this part is done, and fields beside it."""
        if self._task is None:
            return
        now = time.monotonic()
        if self._first is None:
            self._first, self._since = done, now
        seconds, steps = now - self._since, done - self._first
        state = "  ".join(f"{name.replace('_', ' ')} {_cell(value)}" for name, value in fields.items())
        rate = f"{steps / seconds:.3g}/s" if steps > 0 and seconds > 0 else ""
        self._bar.update(self._task, completed=done, state="  ".join(filter(None, (state, rate))))
        due = self._log_every is not None and now - self._logged > self._log_every
        if not _errors.is_terminal and self._log_every is not None and (due or done == self._total):
            self._logged = now
            left = (self._total or done) - done
            remaining = f"{left * seconds / steps:.0f} s left" if left and steps > 0 else ""
            count = f"{done}/{self._total}" if self._total is not None else f"{done}"
            parts = (f"{now - self._begun:6.0f} s", self._text, count, state, rate, remaining)
            print_message("  ".join(filter(None, parts)))

    def message(self, text: str) -> None:
        """Print a sentence."""
        print_message(text)


class Training(ProgressBar):
    """Shows a training run: validation loss, rejected steps, rate and time left."""

    def __init__(self, title: str):
        super().__init__(title, log_every=10.0)

    def update(self, done: int, **fields: Any) -> None:
        """Show how far a stage is; of its metrics the loss and the number of rejected steps."""
        values = {"loss": float(fields["validation_loss"])} if "validation_loss" in fields else {}
        if fields.get("num_rejected"):
            values["rejected"] = fields["num_rejected"]
        super().update(done, **values)


class Sweeping(Progress):
    """Shows a sweep: a bar with cells done, running and failed and the time left, or a line now and then."""

    def __init__(self, title: str):
        self._interval, self._shown, self._said = 30.0, -math.inf, ""
        columns = (
            rich_progress.SpinnerColumn(),
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.BarColumn(),
            rich_progress.TextColumn("{task.fields[state]}"),
        )
        self._bar = rich_progress.Progress(
            *columns, console=_errors, transient=True, disable=not _errors.is_terminal
        )
        self._task = self._bar.add_task(title, state="")

    def __enter__(self) -> "Sweeping":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, text: str, total: int | None = None) -> None:
        """Show the number of cells."""
        self._total = total

    def update(self, done: int, **fields: Any) -> None:
        """Show how far the sweep is."""
        total, seconds_left = self._total, fields["seconds_left"]
        left = "" if seconds_left is None else f", about {seconds_left / 60:.0f} min left"
        state = f"{done}/{total} cells, {fields['running']} running, {fields['failed']} failed"
        self._bar.update(self._task, completed=done, total=total, state=state + left)
        now = time.monotonic()
        if (
            not _errors.is_terminal
            and state != self._said
            and (now - self._shown > self._interval or done == total)
        ):
            self._shown, self._said = now, state
            print_message(state + left)

    def message(self, text: str) -> None:
        """Print a message."""
        print_message(text)


def print_message(message: str) -> None:
    """Print a message on the error stream."""
    _errors.print(printable(message), markup=False, highlight=False, soft_wrap=True)


def print_error(message: str) -> None:
    """Print what went wrong on the error stream."""
    _errors.print(f"lintra: {printable(message)}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a JSON list."""
    print_json(list(map(dict, rows)))


def print_json(value: Any) -> None:
    """Print a value as JSON, with null for NaN and infinity."""
    print(to_json(value))


def print_table(
    rows: Sequence[Mapping[str, Any]], title: str, columns: Mapping[str, str], footnote: str = ""
) -> None:
    """Print rows as a table with the given keys as columns under the given headings, and a footnote below it."""
    table = Table(title=Text(printable(title)), box=box.SIMPLE_HEAD, title_justify="left")
    headings = {key: heading for key, heading in columns.items() if any(row.get(key) is not None for row in rows)}
    for key, heading in headings.items():
        texts = any(isinstance(row.get(key), str) for row in rows)
        long = any(len(str(row.get(key))) > _LONG for row in rows)
        table.add_column(heading, justify="left" if texts else "right", no_wrap=not long, overflow="fold")
    previous = None
    for row in rows:
        section = row.get("file"), row.get("noise")
        if previous is not None and section != previous:
            table.add_section()
        previous = section
        table.add_row(*(Text(printable(_cell(row.get(key)))) for key in headings))  # as text, without markup
    console = Console()
    if not console.is_terminal:  # a log keeps every column
        console = Console(width=200)
    console.print(table)
    if footnote:
        console.print(Text(printable(footnote)), soft_wrap=True)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or 1e-2 <= abs(value) < 1e4 else f"{value:.3g}"
    return str(value)
