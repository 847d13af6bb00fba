"""The report's page: one self-contained HTML file with Table 1, all figures and the paper's statements."""

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from lintra.evaluation.table1_column import Table1Column
from lintra.report import table1_html, table1_summary
from lintra.report.statements import StatementResult
from lintra.report.statements.table import VERDICTS
from lintra.runtime.escaping import source_hash

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
        contents="".join(f'<li><a href="#{_anchor(p)}">{html.escape(p.title)}</a></li>' for p in pictures),
        summary="".join(f"<li>{html.escape(text)}</li>" for text in table1_summary.summarise(columns)),
        table=table1_html.table(columns),
        gains=table1_html.gains(columns),
        exceptions=table1_html.exceptions(columns),
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


def _verdict(verdict: StatementResult) -> str:
    kind = {True: "yes", False: "no", None: ""}[verdict.holds]
    section = f" ({html.escape(verdict.source)})" if verdict.source else ""
    return (
        f'<li class="{kind}"><strong>{html.escape(verdict.statement)}</strong>{section} '
        f"<em>{VERDICTS[verdict.holds]}</em><br>{html.escape(verdict.measured)}</li>"
    )


def _anchor(picture: Picture) -> str:
    return html.escape(picture.title.lower().replace(" ", "-"))


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png.read_bytes()).decode()
    caption = html.escape(picture.caption)
    return (
        f'<figure id="{_anchor(picture)}"><h3>{html.escape(picture.title)}</h3>'
        f'<img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )
