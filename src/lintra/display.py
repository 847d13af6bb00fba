"""Tables and plots as values: rows to CSV, curves and the plots made of them."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = dict[str, Any]
"""Values by column."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # first characters by which spreadsheets know a formula


@dataclass(frozen=True)
class Curve:
    """A line of a plot, with error bars unless `error` is `None`."""

    label: str
    x: Any
    y: Any
    error: Any = None
    dashed: bool = False


@dataclass(frozen=True)
class Plot:
    """Curves on common axes."""

    title: str
    xlabel: str
    ylabel: str
    curves: list[Curve]
    xscale: str = "log"
    yscale: str = "log"
    xticks: Sequence[float] | None = None  # with plain numbers; `None` leaves the ticks to the scale


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    r"""Write rows, which must all have the same columns, under a line with their names.

    Text that a spreadsheet would run as a formula gets an apostrophe in front.

    >>> to_csv([{"layers": 1, "loss": 0.5}, {"layers": None, "loss": 0.25}])
    'layers,loss\n1,0.5\n,0.25\n'
    """
    text = io.StringIO()
    writer, names = csv.writer(text, lineterminator="\n"), list(rows[0]) if rows else []
    writer.writerow(map(csv_cell, names))
    writer.writerows([csv_cell(row[name]) for name in names] for row in rows)
    return text.getvalue()


def csv_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: such text gets an apostrophe in front.

    Numbers stay as they are, also where they are written as text.

    >>> csv_cell("=1+1"), csv_cell("-1.5e3"), csv_cell(-1.5)
    ("'=1+1", '-1.5e3', -1.5)
    """
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return "'" + value
    return value


def select(rows: Sequence[dict[str, Any]], *columns: str, **where: Any) -> list[np.ndarray]:
    """Return columns of the rows that have these values."""
    selected = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return [np.asarray([row[column] for row in selected]) for column in columns]
