"""What people see: progress bars, tables, and rows as JSON for programs."""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn as Bar
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from lintra.runtime.escaping import printable
from lintra.runtime.files import finite

_errors = Console(stderr=True)
_LONG = 60  # a cell that may take several lines


def progress(description: str) -> Callable[[Iterable[int], int], Iterator[int]]:
    """A tracker that shows a bar with the time left on a terminal, and nothing in a log."""

    def track(items: Iterable[int], total: int) -> Iterator[int]:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), Bar(), TimeRemainingColumn())
        with Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as bar:
            yield from bar.track(items, total=total, description=description)

    return track


class Training:
    """Shows a training run: a bar with loss, rate and time left on a terminal, a line now and then in a log."""

    def __init__(self, title: str):
        self._title, self._interval, self._shown = title, 10.0, -math.inf
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            Bar(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[loss]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal)
        self._stage, self._task = None, None
        self._begun = time.monotonic()

    def __enter__(self) -> "Training":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def report(self, stage: str, done: tuple[int, int], metrics: Mapping[str, Any]) -> None:
        """Show where a stage is."""
        now, loss = time.monotonic(), f"loss {metrics['held_out']:.4g}"
        if stage != self._stage:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._stage, self._since = stage, (now, done[0])
            self._task = self._bar.add_task(f"{self._title}: {stage}", total=done[1], loss="", rate="")
        seconds, steps = now - self._since[0], done[0] - self._since[1]
        rate = f"{steps / seconds:.3g}/s" if seconds > 0 and steps else ""
        assert self._task is not None
        self._bar.update(self._task, completed=done[0], total=done[1], loss=loss, rate=rate)
        if not _errors.is_terminal and (now - self._shown > self._interval or done[0] == done[1]):
            self._shown = now
            left = f", {(done[1] - done[0]) * seconds / steps:.0f} s left" if steps and done[0] < done[1] else ""
            refused = f", {metrics['rejected']} steps refused" if metrics.get("rejected") else ""
            time_used = f"{now - self._begun:6.0f} s"
            say(f"{time_used}  {stage}  {done[0]}/{done[1]}  {loss}{refused}  {rate}{left}")

    def track(self, items: Iterable[int], total: int) -> Iterator[int]:
        """Show the measurement at the end."""
        task = self._bar.add_task(f"{self._title}: measuring", total=total, loss="", rate="")
        for item in items:
            yield item
            self._bar.advance(task)


class Sweeping:
    """Shows a sweep: a bar with cells done, running and failed and the time left, or a line now and then."""

    def __init__(self, title: str):
        self._interval, self._shown, self._said = 30.0, -math.inf, ""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            Bar(),
            TextColumn("{task.fields[state]}"),
        )
        self._bar = Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal)
        self._task = self._bar.add_task(title, state="")

    def __enter__(self) -> "Sweeping":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def watch(self, done: int, total: int, running: int, failed: int, seconds_left: float | None) -> None:
        """Show how far it is."""
        left = "" if seconds_left is None else f", about {seconds_left / 60:.0f} min left"
        state = f"{done}/{total} cells, {running} running, {failed} failed"
        self._bar.update(self._task, completed=done, total=total, state=state + left)
        now = time.monotonic()
        if (
            not _errors.is_terminal
            and state != self._said
            and (now - self._shown > self._interval or done == total)
        ):
            self._shown, self._said = now, state
            say(state + left)


def say(sentence: str) -> None:
    """Tell something, on the error stream."""
    _errors.print(printable(sentence), markup=False, highlight=False, soft_wrap=True)


def complain(sentence: str) -> None:
    """Say what went wrong, on the error stream."""
    _errors.print(f"lintra: {printable(sentence)}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a JSON list."""
    print_json(list(map(dict, rows)))


def print_json(value: Any) -> None:
    """Print a value as JSON; what is not finite becomes null, as JSON has no word for it."""
    print(json.dumps(finite(value), indent=2))


def print_table(rows: Sequence[Mapping[str, Any]], title: str, columns: Mapping[str, str]) -> None:
    """Print rows as a table with the given keys as columns under the given headings."""
    table = Table(title=Text(printable(title)), box=box.SIMPLE_HEAD, title_justify="left")
    shown = {key: heading for key, heading in columns.items() if any(row.get(key) is not None for row in rows)}
    for key, heading in shown.items():
        texts = any(isinstance(row.get(key), str) for row in rows)
        long = any(len(str(row.get(key))) > _LONG for row in rows)
        table.add_column(heading, justify="left" if texts else "right", no_wrap=not long, overflow="fold")
    previous = None
    for row in rows:
        section = row.get("file"), row.get("noise")
        if previous is not None and section != previous:
            table.add_section()
        previous = section
        table.add_row(*(Text(printable(_cell(row.get(key)))) for key in shown))  # text, in which nothing is markup
    console = Console()
    if not console.is_terminal:  # a log keeps every column
        console = Console(width=200)
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or 1e-2 <= abs(value) < 1e4 else f"{value:.3g}"
    return str(value)
