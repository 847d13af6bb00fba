"""The report: one HTML file with Table 1, all figures and the paper's statements, and nothing outside it."""

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

from lintra.evaluation.column import Column, Row
from lintra.figures.style import LOOKS
from lintra.report.claims import Verdict
from lintra.runtime.escaping import source_hash

_LABELS = {method: look.label for method, look in LOOKS.items()}
_MARKS = {"below": "▼", "level": "●", "above": "▲", "floor": "◆", "": ""}
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
    columns: Sequence[Column],
    pictures: Sequence[Picture],
    verdicts: Sequence[Verdict],
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


def _summary(columns: Sequence[Column]) -> str:
    """How many cells are where, how many orderings hold, and where most was gained."""
    rows = [row for column in columns for row in column.rows if row.layers is not None and row.paper is not None]
    counts = Counter(row.verdict for row in rows)
    orderings = [ordering for column in columns for ordering in column.orderings]
    held = sum(ordering.holds for ordering in orderings)
    gains = sorted((row for row in rows if row.verdict == "below" and row.paper), key=_ratio)[:_GAINS]
    listed = "; ".join(
        f"{_LABELS[row.method]}-{row.layers} at {row.noise} {number(row.protocol[0])} for {number(row.paper or 0)}"
        for row in gains
    )
    largest = f"<p>The largest gains, by the paper's protocol: {html.escape(listed)}.</p>" if gains else ""
    return (
        f"<p>Of {len(rows)} model cells {counts['below']} are below the paper's figure, {counts['level']} level "
        f"with it, {counts['above']} above it, and {counts['floor']} are cells of GD++ for which the paper prints "
        f"less than is possible. {held} of {len(orderings)} orderings hold (a larger family is not worse "
        "than a smaller one, nor a deeper model than a shallower one, by more than two standard errors).</p>"
        f"{largest}"
    )


def _ratio(row: Row) -> float:
    """By the paper's protocol, as a share of the paper's figure."""
    return row.protocol[0] / (row.paper or math.nan)


def _table(columns: Sequence[Column]) -> str:
    heads = "".join(f"<th scope=col>{html.escape(column.noise)}</th>" for column in columns)
    by_place = [{(row.method, row.layers): row for row in column.rows} for column in columns]
    best = [min((r.adjusted_loss for r in column.rows if r.layers), default=math.nan) for column in columns]
    lines, depth, order = [], 0, list(_LABELS)
    places = dict.fromkeys(place for rows in by_place for place in rows)
    for method, layers in sorted(places, key=lambda place: (place[1] or math.inf, order.index(place[0]))):
        if layers != depth:
            depth = layers
            title = "Baselines" if layers is None else f"{layers} layer{'s' * (layers > 1)}"
            lines.append(f"<tr class=section><th scope=rowgroup colspan={len(columns) + 1}>{title}</th></tr>")
        cells = "".join(
            _cell(rows.get((method, layers)), least) for rows, least in zip(by_place, best, strict=True)
        )
        lines.append(f"<tr><th scope=row>{_LABELS[method]}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(row: Row | None, best: float) -> str:
    if row is None:
        return "<td class=empty>–</td>"
    value = number(row.adjusted_loss)
    value = f"<strong>{value}</strong>" if row.layers and row.adjusted_loss == best else value
    printed = "" if row.paper is None else f"<small>{_MARKS[row.verdict]} {number(row.paper)}</small>"
    median, low, high = row.protocol
    title = (
        f"{row.adjusted_loss:.4g} ± {row.standard_error:.2g}; the paper's protocol repeated: {median:.4g} "
        f"({low:.4g} to {high:.4g}); Bayes floor {row.bayes_floor:.4g}; worst sequence {row.tail.worst:.3g}"
    )
    shade = f"far-{100 * _distance(row):.0f}"
    return f'<td class="{row.verdict} {shade}" title="{html.escape(title)}">{value}{printed}</td>'


def _distance(row: Row) -> float:
    """How far from the Bayes floor: 0 at the floor, 1 at ten times the floor or more."""
    if row.bayes_floor < 1e-12 or row.method == "bayes":
        return 0.0
    return min(max(math.log10(max(row.adjusted_loss / row.bayes_floor, 1.0)), 0.0), 1.0)


def number(value: float) -> str:
    """As the paper prints figures.

    >>> number(0.04712), number(1.14e-7), number(0.0)
    ('0.0471', '1.14e-07', '0')
    """
    if abs(value) < 1e-20:
        return "0"
    if not 5e-4 <= abs(value) < 1e4:
        return f"{value:.2e}"
    return f"{value:.3f}" if abs(value) >= 0.1 else f"{value:.4f}"


def _exceptions(columns: Sequence[Column]) -> str:
    """Cells above the paper and orderings that do not hold, each by how much."""
    lines = []
    for column in columns:
        for row in column.rows:
            if row.verdict in ("above", "floor") and row.paper is not None:
                median, low, high = row.protocol
                why = "above the paper"
                if row.verdict == "floor":
                    why = f"the paper's figure is below the floor of GD++, {row.floor:.4f}"
                name = _LABELS[row.method] + (f"-{row.layers}" if row.layers else "")
                lines.append(
                    f"{name}, {column.noise}: {median:.3g} "
                    f"({low:.3g} to {high:.3g}) against {row.paper:.3g}; {why}"
                )
        for ordering in column.orderings:
            if not ordering.holds:
                gap = ordering.difference
                larger, smaller = (f"{name}-{depth}" for name, depth in (ordering.larger, ordering.smaller))
                by = f"{gap.mean:.2g} ± {gap.standard_error:.1g}"
                lines.append(f"{larger} is worse than {smaller} at {column.noise} by {by}")
    listed = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<ul>{listed}</ul>" if lines else "<p>None.</p>"


def _verdict(verdict: Verdict) -> str:
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
