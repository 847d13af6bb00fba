"""The report's page: one self-contained HTML file with Table 1, all figures and the paper's statements."""

import base64
import html
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from lintra.evaluation.paper import Verdict
from lintra.evaluation.table1_column import Table1Column, Table1Row
from lintra.figures.style import STYLES
from lintra.report.claims import StatementResult
from lintra.runtime.escaping import source_hash

_LABELS = {method: style.label for method, style in STYLES.items()}
_MARKS = {Verdict.BELOW: "▼", Verdict.LEVEL: "●", Verdict.ABOVE: "▲", Verdict.FLOOR: "◆", "": ""}
_GAINS = 12
_POLICY = "default-src 'none'; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Picture:
    """A figure in the report."""

    title: str
    caption: str
    png: Path


def page(
    *,
    facts: Sequence[tuple[str, str]],
    columns: Sequence[Table1Column],
    pictures: Sequence[Picture],
    verdicts: Sequence[StatementResult],
    missing: Sequence[str],
) -> str:
    """The whole page."""
    return _template().substitute(
        facts="".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in facts),
        missing=_missing(missing),
        summary=_summary(columns),
        table=_table(columns),
        exceptions=_exceptions(columns),
        verdicts="".join(map(_verdict, verdicts)),
        figures="".join(map(_figure, pictures)),
    )


def _template() -> Template:
    """The page with its style and a policy that allows this style and pictures inside the page, and no more."""
    page = resources.files("lintra").joinpath("data/report.html").read_text(encoding="utf-8")
    before, style, after = re.split("(?<=<style>)(.*)(?=</style>)", page, flags=re.DOTALL)
    # A class for each shade of a cell: a policy can allow rules by their hash, but not style attributes.
    style = Template(style).substitute(shades=" ".join(f".far-{n} {{ --far: {n / 100}; }}" for n in range(101)))
    policy = f"{_POLICY}; style-src {source_hash(style)}"
    return Template(before.replace("$policy", policy) + style.replace("$", "$$") + after)


def _missing(names: Sequence[str]) -> str:
    if not names:
        return ""
    listed = ", ".join(map(html.escape, names))
    return f'<p class="warning"><strong>Missing models:</strong> {listed}. Their cells are empty.</p>'


def _summary(columns: Sequence[Table1Column]) -> str:
    """How many cells are where, how many orderings hold, and where most was gained."""
    rows = [
        row for column in columns for row in column.rows if row.num_layers is not None and row.paper is not None
    ]
    counts = Counter(row.verdict for row in rows)
    orderings = [ordering for column in columns for ordering in column.orderings]
    held = sum(ordering.holds for ordering in orderings)
    gains = sorted((row for row in rows if row.verdict == Verdict.BELOW and row.paper), key=_ratio)[:_GAINS]
    listed = "; ".join(
        f"{_LABELS[row.method]}-{row.num_layers} at {row.noise} {number(row.protocol.median)} "
        f"for {number(row.paper or 0)}"
        for row in gains
    )
    largest = f"<p>The largest gains, by the paper's protocol: {html.escape(listed)}.</p>" if gains else ""
    return (
        f"<p>Of {len(rows)} model cells {counts[Verdict.BELOW]} are below the printed loss, "
        f"{counts[Verdict.LEVEL]} level with it, {counts[Verdict.ABOVE]} above it, and "
        f"{counts[Verdict.FLOOR]} are cells of GD++ for which the paper prints less than is possible. "
        f"{held} of {len(orderings)} orderings hold (a larger family is not worse than a smaller one, "
        "nor a deeper model than a shallower one, by more than two standard errors).</p>"
        f"{largest}"
    )


def _ratio(row: Table1Row) -> float:
    """The protocol's median as a share of the printed loss."""
    return row.protocol.median / (row.paper or math.nan)


def _table(columns: Sequence[Table1Column]) -> str:
    heads = "".join(f"<th scope=col>{html.escape(column.noise)}</th>" for column in columns)
    by_cell = [{(row.method, row.num_layers): row for row in column.rows} for column in columns]
    best = [min((r.adjusted_loss for r in column.rows if r.num_layers), default=math.nan) for column in columns]
    lines, depth, order = [], 0, list(_LABELS)
    methods = dict.fromkeys(cell for rows in by_cell for cell in rows)
    for method, layers in sorted(methods, key=lambda cell: (cell[1] or math.inf, order.index(cell[0]))):
        if layers != depth:
            depth = layers
            title = "Baselines" if layers is None else f"{layers} layer{'s' * (layers > 1)}"
            lines.append(f"<tr class=section><th scope=rowgroup colspan={len(columns) + 1}>{title}</th></tr>")
        cells = "".join(
            _cell(rows.get((method, layers)), least) for rows, least in zip(by_cell, best, strict=True)
        )
        lines.append(f"<tr><th scope=row>{_LABELS[method]}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(row: Table1Row | None, best: float) -> str:
    if row is None:
        return "<td class=empty>–</td>"
    value = number(row.adjusted_loss)
    value = f"<strong>{value}</strong>" if row.num_layers and row.adjusted_loss == best else value
    printed = "" if row.paper is None else f"<small>{_MARKS[row.verdict]} {number(row.paper)}</small>"
    protocol = row.protocol
    title = (
        f"{row.adjusted_loss:.4g} ± {row.standard_error:.2g}; the paper's protocol repeated: "
        f"{protocol.median:.4g} ({protocol.low:.4g} to {protocol.high:.4g}); Bayes floor {row.bayes_floor:.4g}; "
        f"worst sequence {row.tail.worst:.3g}{_damped(row)}"
    )
    shade = f"far-{100 * _distance(row):.0f}"
    return f'<td class="{row.verdict} {shade}" title="{html.escape(title)}">{value}{printed}</td>'


def _damped(row: Table1Row) -> str:
    """Return what is said about the damped model."""
    if row.damped is None:
        return ""
    loss, tail = row.damped
    return f"; as printed; damped {loss.mean:.4g} ± {loss.standard_error:.2g}, worst sequence {tail.worst:.3g}"


def _distance(row: Table1Row) -> float:
    """How far from the Bayes floor: 0 at the floor, 1 at ten times the floor or more."""
    if row.bayes_floor < 1e-12 or row.method == "bayes":
        return 0.0
    return min(max(math.log10(max(row.adjusted_loss / row.bayes_floor, 1.0)), 0.0), 1.0)


def number(value: float) -> str:
    """Write a number as the paper prints it.

    >>> number(0.04712), number(1.14e-7), number(0.0)
    ('0.0471', '1.14e-07', '0')
    """
    if abs(value) < 1e-20:
        return "0"
    if not 5e-4 <= abs(value) < 1e4:
        return f"{value:.2e}"
    return f"{value:.3f}" if abs(value) >= 0.1 else f"{value:.4f}"


def _exceptions(columns: Sequence[Table1Column]) -> str:
    """Cells above the paper and orderings that do not hold, each by how much."""
    lines = []
    for column in columns:
        for row in column.rows:
            if row.verdict in (Verdict.ABOVE, Verdict.FLOOR) and row.paper is not None:
                protocol = row.protocol
                why = "above the paper"
                if row.verdict == Verdict.FLOOR:
                    why = f"the printed loss is below the floor of GD++, {row.gdpp_floor:.4f}"
                name = _LABELS[row.method] + (f"-{row.num_layers}" if row.num_layers else "")
                lines.append(
                    f"{name}, {column.noise}: {protocol.median:.3g} "
                    f"({protocol.low:.3g} to {protocol.high:.3g}) against {row.paper:.3g}; {why}"
                )
        for ordering in column.orderings:
            if not ordering.holds:
                gap = ordering.difference
                larger, smaller = (f"{s.family}-{s.num_layers}" for s in (ordering.larger, ordering.smaller))
                by = f"{gap.mean:.2g} ± {gap.standard_error:.1g}"
                lines.append(f"{larger} is worse than {smaller} at {column.noise} by {by}")
    listed = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<ul>{listed}</ul>" if lines else "<p>None.</p>"


def _verdict(verdict: StatementResult) -> str:
    kind, word = {True: ("yes", "holds"), False: ("no", "does not hold"), None: ("", "not measured")}[
        verdict.holds
    ]
    return (
        f'<li class="{kind}"><strong>{html.escape(verdict.statement)}</strong> '
        f"<em>{word}</em><br>{html.escape(verdict.measured)}</li>"
    )


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png.read_bytes()).decode()
    caption, name = html.escape(picture.caption), html.escape(picture.title.lower().replace(" ", "-"))
    return (
        f'<figure id="{name}"><h3>{html.escape(picture.title)}</h3>'
        f'<img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )
