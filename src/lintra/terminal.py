"""What people see: progress bars, tables, and rows as JSON for programs."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn as Bar
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

_errors = Console(stderr=True)


def progress(description: str) -> Callable[[Iterable[int], int], Iterator[int]]:
    """A tracker that shows a bar with the time left on a terminal, and nothing in a log."""

    def track(items: Iterable[int], total: int) -> Iterator[int]:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), Bar(), TimeRemainingColumn())
        with Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as bar:
            yield from bar.track(items, total=total, description=description)

    return track


def complain(sentence: str) -> None:
    """Say what went wrong, on the error stream."""
    _errors.print(f"lintra: {sentence}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a JSON list; what is not finite becomes null, as JSON has no word for it."""
    print(json.dumps([{key: _finite(value) for key, value in row.items()} for row in rows], indent=2))


def print_table(rows: Sequence[Mapping[str, Any]], title: str, columns: Mapping[str, str]) -> None:
    """Print rows as a table with the given keys as columns under the given headings."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    shown = {key: heading for key, heading in columns.items() if any(row.get(key) is not None for row in rows)}
    for key, heading in shown.items():
        texts = any(isinstance(row.get(key), str) for row in rows)
        table.add_column(heading, justify="left" if texts else "right", no_wrap=True)
    previous = None
    for row in rows:
        section = row.get("file"), row.get("noise")
        if previous is not None and section != previous:
            table.add_section()
        previous = section
        table.add_row(*(_cell(row.get(key)) for key in shown))
    console = Console()
    if not console.is_terminal:  # a log keeps every column
        console = Console(width=200)
    console.print(table)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or 1e-2 <= abs(value) < 1e4 else f"{value:.3g}"
    return str(value)
