"""Tables and plots as values: rows to CSV, curves and the plots made of them."""

import csv
import io
import math
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


def plus_minus(mean: float, standard_error: float) -> str:
    """Write a mean and its standard error with as many digits as the error has.

    Args:
        mean: The mean; may be infinite or NaN.
        standard_error: Its standard error. An error of rounding, below 1e-12 of the mean, is written as 0.

    Returns:
        The text. The error has one digit, or two if the first one is 1.

    >>> plus_minus(0.0401234, 0.00021), plus_minus(5.5123e-9, 1.3e-10), plus_minus(1.0, 0.0)
    ('0.0401 ± 0.0002', '5.51e-9 ± 0.13e-9', '1 ± 0')
    >>> plus_minus(math.inf, math.nan), plus_minus(-3.2e9, 1.75e9), plus_minus(68180.0, 20305.0)
    ('not finite', '-3e9 ± 2e9', '70000 ± 20000')
    """
    if not math.isfinite(mean):
        return "not finite"
    if not math.isfinite(standard_error):
        return f"{mean:.3g} (no standard error)"
    if standard_error <= 1e-12 * abs(mean):
        return f"{mean:.4g} ± 0"
    size = float(f"{max(abs(mean), standard_error):.1e}")
    exponent = math.floor(math.log10(size)) if not 1e-4 <= size < 1e5 else 0
    mean, standard_error = mean / 10.0**exponent, standard_error / 10.0**exponent
    error_text = f"{standard_error:.0e}"  # rounded first, since 0.096 has the digits of 0.1
    decimals = error_text.startswith("1") - int(error_text.partition("e")[2])
    mean, standard_error = round(mean, decimals) + 0.0, round(standard_error, decimals)  # 0, not -0
    decimals, suffix = max(decimals, 0), f"e{exponent}" if exponent else ""
    return f"{mean:.{decimals}f}{suffix} ± {standard_error:.{decimals}f}{suffix}"


def select(rows: Sequence[dict[str, Any]], *columns: str, **where: Any) -> list[np.ndarray]:
    """Return columns of the rows that have these values."""
    selected = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return [np.asarray([row[column] for row in selected]) for column in columns]
