"""Table 1 as HTML: its cells, the largest gains and the exceptions."""

import html
import math
from collections.abc import Sequence

from lintra.evaluation.orderings import Ordering
from lintra.evaluation.paper import Verdict
from lintra.evaluation.table1_column import Table1Column, Table1Row
from lintra.report.table1_summary import DOMINATED_MEAN, LABELS, is_below_floor, is_floor_within_error, model_rows

MARKS = {Verdict.BELOW: "▼", Verdict.LEVEL: "●", Verdict.ABOVE: "▲", Verdict.DOMINATED: "◇", "": ""}
_GAINS = 12
_SAFE = {True: "yes", False: "no", None: "not known"}


def number(value: float) -> str:
    """Write a number with three digits after the point, or after the first digit that is not zero.

    >>> number(0.04712), number(1.14e-7), number(0.0), number(float("inf"))
    ('0.0471', '1.14e-07', '0', '∞')
    """
    if math.isinf(value):
        return "∞"
    if abs(value) < 1e-20:
        return "0"
    if not 5e-4 <= abs(value) < 1e4:
        return f"{value:.2e}"
    return f"{value:.3f}" if abs(value) >= 0.1 else f"{value:.4f}"


def printed_number(value: float) -> str:
    """Write a printed loss with the digits that the paper has, three after the point or after the first digit.

    >>> printed_number(0.05), printed_number(9.91e-5), printed_number(0.0)
    ('0.050', '9.91e-05', '0')
    """
    if value == 0:
        return "0"
    return f"{value:.3f}" if value >= 5e-4 else f"{value:.2e}"


def name_of(row: Table1Row) -> str:
    """Return what a cell is called in sentences."""
    return LABELS[row.method] + (f"-{row.num_layers}" if row.num_layers else "")


def gains(columns: Sequence[Table1Column]) -> str:
    """Return the cells that are farthest below the printed loss, as a table."""
    below = [row for row in model_rows(columns) if row.verdict == Verdict.BELOW and row.paper]
    if not below:
        return "<p>None.</p>"
    heads = ("model", "noise prior", "protocol median", "5–95 %", "paper", "ratio", "exploded", "safe as printed")
    head = "".join(f"<th scope=col>{text}</th>" for text in heads)
    lines = []
    for row in sorted(below, key=_ratio)[:_GAINS]:
        protocol = row.protocol
        cells = (
            *(row.noise, number(protocol.median), f"{number(protocol.low)} to {number(protocol.high)}"),
            *(printed_number(row.paper or 0), f"{_ratio(row):.2g}"),
            *(f"{row.num_exploded} of {row.num_sequences:,}", _SAFE[row.printed_safe]),
        )
        data = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        lines.append(f"<tr><th scope=row>{html.escape(name_of(row))}</th>{data}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _ratio(row: Table1Row) -> float:
    """The protocol's median as a share of the printed loss."""
    return row.protocol.median / (row.paper or math.nan)


def table(columns: Sequence[Table1Column]) -> str:
    """Return Table 1: in every cell the median of the protocol, and below it the verdict and the printed loss."""
    heads = "".join(f"<th scope=col>{html.escape(column.noise)}</th>" for column in columns)
    by_cell = [{(row.method, row.num_layers): row for row in column.rows} for column in columns]
    best = [
        min((row.protocol.median for row in column.rows if row.num_layers and row.is_safe), default=math.nan)
        for column in columns
    ]
    lines, depth, order = [], 0, list(LABELS)
    methods = dict.fromkeys(cell for rows in by_cell for cell in rows)
    for method, layers in sorted(methods, key=lambda cell: (cell[1] or math.inf, order.index(cell[0]))):
        if layers != depth:
            depth = layers
            title = "Baselines" if layers is None else f"{layers} layer{'s' * (layers > 1)}"
            lines.append(f"<tr class=section><th scope=rowgroup colspan={len(columns) + 1}>{title}</th></tr>")
        cells = "".join(
            _cell(rows.get((method, layers)), least) for rows, least in zip(by_cell, best, strict=True)
        )
        lines.append(f"<tr><th scope=row>{LABELS[method]}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(row: Table1Row | None, best: float) -> str:
    if row is None:
        return "<td class=empty>–</td>"
    value = number(row.protocol.median)
    is_best = row.num_layers is not None and row.is_safe and row.protocol.median == best
    value = f"<strong>{value}</strong>" if is_best else value
    value += f"<sup>{DOMINATED_MEAN}</sup>" if row.tail.is_dominated else ""
    printed = "" if row.paper is None else f"<small>{MARKS[row.verdict]} {printed_number(row.paper)}</small>"
    classes = f"{row.verdict} far-{100 * _distance(row):.0f}".strip()
    return f'<td class="{classes}" title="{html.escape(_details(row))}">{value}{printed}</td>'


def _details(row: Table1Row) -> str:
    """Return what is shown on hover: mean and error, range, tail, floors, safety and the damped model."""
    protocol = row.protocol
    parts = [
        f"mean {row.adjusted_loss:.4g} ± {row.standard_error:.2g} over {row.num_sequences:,} sequences",
        f"the paper's protocol repeated: median {protocol.median:.4g} ({protocol.low:.4g} to {protocol.high:.4g})",
        f"ten sequences have up to {_share(protocol.top_share)} of a repetition's sum",
        f"worst sequence {row.tail.worst:.3g}",
        f"{row.num_exploded} of {row.num_sequences:,} exploded",
        f"Bayes floor {row.bayes_floor:.4g}",
    ]
    if row.method == "gd++":
        less = ", the paper prints less" if is_below_floor(row) else ""
        parts.append(f"floor of GD++ {row.gdpp_floor:.4g}{less}")
    if row.num_layers is not None:
        parts.append(f"safe as printed: {_SAFE[row.printed_safe]}")
    if row.selected_family not in (None, row.method):
        parts.append(f"holds a model of {LABELS[row.selected_family or '']}")
    if row.damped is not None:
        loss, tail = row.damped
        parts.append(f"damped {loss.mean:.4g} ± {loss.standard_error:.2g}, worst sequence {tail.worst:.3g}")
    return "; ".join(parts)


def _share(share: float) -> str:
    """Write a share in percent. NaN is that of an infinite loss."""
    return "100 %" if math.isnan(share) else f"{100 * share:.3g} %"


def _distance(row: Table1Row) -> float:
    """How far from the Bayes floor: 0 at the floor, 1 at ten times the floor or more."""
    if row.bayes_floor < 1e-12 or row.method == "bayes":
        return 0.0
    return min(max(math.log10(max(row.protocol.median / row.bayes_floor, 1.0)), 0.0), 1.0)


def exceptions(columns: Sequence[Table1Column]) -> str:
    """Return cells above the paper or dominated, printed losses below the floor, and orderings that fail."""
    rows = [row for column in columns for row in column.rows if row.paper is not None]
    orderings = [ordering for column in columns for ordering in column.orderings if not ordering.holds]
    parts = {
        "Above the paper": [_compared(row) for row in rows if row.verdict == Verdict.ABOVE],
        "Dominated by few sequences": [_dominated(row) for row in rows if row.verdict == Verdict.DOMINATED],
        "Printed below the floor of GD++": [_below_floor(row) for row in rows if is_below_floor(row)],
        "Orderings that do not hold": [_broken(ordering) for ordering in orderings],
    }
    sections = []
    for title, lines in parts.items():
        listed = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        sections.append(f"<h3>{title}</h3>" + (f"<ul>{listed}</ul>" if lines else "<p>None.</p>"))
    return "".join(sections)


def _compared(row: Table1Row) -> str:
    protocol = row.protocol
    return (
        f"{name_of(row)}, {row.noise}: {number(protocol.median)} ({number(protocol.low)} to "
        f"{number(protocol.high)}) against {printed_number(row.paper or 0)}"
    )


def _dominated(row: Table1Row) -> str:
    return (
        f"{_compared(row)}; ten of 100,000 sequences have up to {_share(row.protocol.top_share)} of the sum; "
        f"{row.num_exploded} of {row.num_sequences:,} exploded, the worst loss is {row.tail.worst:.2g}"
    )


def _below_floor(row: Table1Row) -> str:
    error = "no more" if is_floor_within_error(row) else "more"
    return (
        f"{name_of(row)}, {row.noise}: the paper prints {printed_number(row.paper or 0)}, the floor is "
        f"{row.gdpp_floor:.4f}, above it by {error} than the paper's own sampling error and rounding"
    )


def _broken(ordering: Ordering) -> str:
    gap = ordering.difference
    few = "; few sequences dominate this difference" if ordering.is_dominated else ""
    return (
        f"{ordering.larger.name} is worse than {ordering.smaller.name} by {gap.mean:.2g} ± "
        f"{gap.standard_error:.1g}{few}"
    )
