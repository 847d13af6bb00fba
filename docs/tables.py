"""Tables of the documentation, written from measurements so that they stay what was measured.

A page has `<!-- table: name -->` and `<!-- end -->` around a table. `make tables` fills them from the cards of the
published models and from the CSV files in `docs/`; `make tables REPORT=report` also fills those that come from the
files of `lintra report`. `python docs/tables.py --measure` first writes the CSV files of the regressions.
"""

import argparse
import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintra import zoo
from lintra.display import Row, plus_minus, to_csv
from lintra.evaluation.paper import NOISES
from lintra.report.statements import markdown_table
from lintra.runtime.files import write_atomic

DOCS = Path(__file__).parent
PAGES = (DOCS.parent / "README.md", DOCS / "results.md", DOCS / "statements.md")
_MARK = re.compile(r"^<!-- (?:table: (?P<name>[\w-]+)|(?P<end>end)) -->$", re.MULTILINE)
_LARGE_LOSS = 1000  # a loss that shows a divergence; zero weights have 5 on average at d = 10
_BASELINES = {"const-ridge": "ConstRR", "ada-ridge": "AdaRR", "tuned-ridge": "TunedRR"}
_FAMILIES = {("diag", "1"): "Diag", ("diag", "2"): "Diag, two heads", ("full", "1"): "Full"}
_DEPTHS = ("7", "10", "12")
_HEADLINE = ("uniform(0,2)", "uniform(0,3)", "uniform(0,5)", "uniform(0,7)", "choice(1,3)", "choice(1,3,5)")
_HEADLINE_FAMILIES = {"gd++": "GD++", "diag": "Diag", "full": "Full"}


def tails(cards: Mapping[str, Row]) -> str:
    """Published models that explode at the gate, or have a loss above 1,000 on their card; damped ones first."""
    rows = []
    for name, card in cards.items():
        forms = ("num_exploded", "float32_num_exploded", "printed_num_exploded")
        counts = [card[form] for form in forms]
        if any(counts) or card["worst"] > _LARGE_LOSS:
            row = {
                "published model": f"`{name}`",
                "exploded damped": f"{counts[0]:,}",
                "in 32 bits": f"{counts[1]:,}",
                "as printed": f"{counts[2]:,}",
                "worst damped": _large(card["gate_worst"]),
                "worst as printed": _large(card["printed_gate_worst"]),
                "median loss": f"{card['median']:.3g}",
            }
            rows.append((-counts[0], -counts[2], -card["worst"], name, row))
    return markdown([row for *_, row in sorted(rows, key=lambda row: row[:-1])]) if rows else "None."


def gate(cards: Mapping[str, Row]) -> str:
    """How many published models explode at the gate, by number of layers."""
    columns = {"as printed": "printed_safe", "damped": "safe", "damped, in 32 bits": "float32_safe"}
    rows = []
    for depth in sorted({card["layers"] for card in cards.values()}):
        at_depth = [card for card in cards.values() if card["layers"] == depth]
        counts = {column: str(sum(not card[field] for card in at_depth)) for column, field in columns.items()}
        rows.append({"layers": depth, "models": len(at_depth)} | counts)
    return markdown(rows)


def headline(table1: Sequence[Row]) -> str:
    """Losses of models with seven layers at some priors, with the printed ones in brackets."""
    cells = {(row["method"], row["layers"], row["noise"]): row for row in table1}
    rows = []
    for noise in _HEADLINE:
        row = {"noise prior": noise}
        for family, label in _HEADLINE_FAMILIES.items():
            cell = cells[family, "7", noise]
            row[label] = f"{_loss(cell)} ({float(cell['paper']):g})"
        rows.append(row | {"Bayes floor": _loss(cells["bayes", "", noise])})
    return markdown(rows)


def baselines(table1: Sequence[Row]) -> str:
    """Baselines of Table 1 beside the printed losses, and the Bayes floor."""
    cells = {(row["method"], row["noise"]): row for row in table1}
    rows = []
    for noise in NOISES:
        row = {"noise": noise}
        for method, label in _BASELINES.items():
            cell = cells[method, noise]
            row |= {label: _loss(cell), f"*paper, {label}*": f"*{float(cell['paper']):g}*"}
        rows.append(row | {"**Bayes floor**": _loss(cells["bayes", noise])})
    return markdown(rows)


def above_paper(table1: Sequence[Row], details: Sequence[Row]) -> str:
    """Cells of Table 1 whose range lies above the printed loss."""
    printed = {(row["method"], row["layers"], row["noise"]): row["paper"] for row in table1}
    rows = []
    for row in details:
        if row["verdict"] == "above":
            quantiles = [f"{float(row[f'protocol_{name}']):.3g}" for name in ("median", "5", "95")]
            rows.append(
                {
                    "cell": f"{row['method']}-{row['layers']} at {row['noise']}",
                    "median of the protocol": quantiles[0],
                    "5–95 %": f"{quantiles[1]} … {quantiles[2]}",
                    "paper": f"{float(printed[row['method'], row['layers'], row['noise']]):g}",
                }
            )
    return markdown(rows) if rows else "None."


def figure8(rows: Sequence[Row]) -> str:
    """Loss above the Bayes floor at three depths, and that of the baselines."""
    noises = list(dict.fromkeys(row["noise"] for row in rows))
    cells = {(row["method"], row["heads"], row["layers"], row["noise"]): row for row in rows}
    kinds = [(label, family, heads, depth) for (family, heads), label in _FAMILIES.items() for depth in _DEPTHS]
    kinds += [(label, method, "", "") for method, label in _BASELINES.items()]
    table = []
    for label, method, heads, depth in kinds:
        found = {noise: cells.get((method, heads, depth, noise)) for noise in noises}
        if any(found.values()):
            excess = {noise: cell and _pair(cell, "excess") for noise, cell in found.items()}
            table.append({"method": label, "layers": depth, **excess})
    return markdown(table)


def regressions(rows: Sequence[Row]) -> str:
    """Squared errors on real data, with the least of a row in bold."""
    table = []
    for data, noise in dict.fromkeys((row["data"], row["noise"]) for row in rows):
        cells = [row for row in rows if (row["data"], row["noise"]) == (data, noise)]
        row = {"data": data, "noise": f"{float(noise):g}"}
        row |= dict(zip([cell["method"] for cell in cells], _bold_least(cells, "error"), strict=True))
        by_model = next(cell for cell in cells if cell["method"] == "lintra")
        table.append(row | {"fallbacks of lintra": f"{by_model['fallbacks']} of {by_model['subsamples']}"})
    return markdown(table)


def lengths(rows: Sequence[Row]) -> str:
    """Adjusted losses of specialists and others against the number of examples, the least of a length in bold."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    table = []
    for examples in dict.fromkeys(row["examples"] for row in rows):
        cells = {row["method"]: row for row in rows if row["examples"] == examples}
        texts = _bold_least([cells[method] for method in methods], "adjusted_loss")
        table.append({"examples": examples} | dict(zip(methods, texts, strict=True)))
    return markdown(table)


def available_tables(report: Path | None = None) -> dict[str, Callable[[], str]]:
    """Return functions that write tables, by name: from cards and `docs/`, and from a report if one is given."""
    tables: dict[str, Callable[[], str]] = {
        "gate": lambda: gate(zoo.published().cards),
        "tails": lambda: tails(zoo.published().cards),
        "regressions": lambda: regressions(read_csv(DOCS / "regressions.csv")),
        "lengths": lambda: lengths(read_csv(DOCS / "regressions-lengths.csv")),
    }
    if report is not None:
        tables |= {
            "headline": lambda: headline(read_csv(report / "table1.csv")),
            "summary": lambda: bullets((report / "summary.txt").read_text(encoding="utf-8").splitlines()),
            "baselines": lambda: baselines(read_csv(report / "table1.csv")),
            "above-paper": lambda: above_paper(
                read_csv(report / "table1.csv"), read_csv(report / "table1-details.csv")
            ),
            "figure8": lambda: figure8(read_csv(report / "figure8.csv")),
            "statements": lambda: markdown_table(read_csv(report / "statements.csv")),
        }
    return tables


REPORT_TABLES = ("headline", "summary", "baselines", "above-paper", "figure8", "statements")
"""Tables that need the files of `lintra report`."""


def fill(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Replace the tables between markers.

    Args:
        text: A page.
        tables: Functions that write tables, by name. Tables of a page that are not among them stay as they are.

    Returns:
        The page with its tables written anew.

    Raises:
        ValueError: If a marker is not closed, is closed twice or names a table that does not exist.
    """
    parts, position, name = [], 0, None
    for mark in _MARK.finditer(text):
        if (name is None) == bool(mark["end"]):
            raise ValueError(f"`text` has the marker {mark[0]!r} where the other kind must stand.")
        if name is None:
            name = mark["name"]
            if name not in tables and name not in REPORT_TABLES:
                raise ValueError(f"`text` has a table {name!r}, which is none of {', '.join(tables)}.")
            parts.append(text[position : mark.end()])
        else:
            old = text[position : mark.start()]
            parts += [f"\n\n{tables[name]()}\n\n" if name in tables else old, mark[0]]
            name = None
        position = mark.end()
    if name is not None:
        raise ValueError(f"`text` has no `<!-- end -->` after the table {name!r}.")
    return "".join([*parts, text[position:]])


def markdown(rows: Sequence[Row]) -> str:
    """Write rows as a table."""
    lines: list[Iterable[Any]] = [rows[0], ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join(f"| {' | '.join(str(cell or '') for cell in line)} |" for line in lines)


def bullets(sentences: Sequence[str]) -> str:
    """Write sentences as a list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def read_csv(path: Path) -> list[Row]:
    """Read rows of text."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measure() -> None:
    """Measure the regressions anew and write their CSV files: about two minutes of one core."""
    from lintra.bench.regressions import measure_lengths, measure_real

    write_atomic(DOCS / "regressions.csv", to_csv(measure_real()).encode())
    write_atomic(DOCS / "regressions-lengths.csv", to_csv(measure_lengths()).encode())


def _bold_least(cells: Sequence[Row], column: str) -> list[str]:
    least = min(float(cell[column]) for cell in cells)
    return [_bold(_pair(cell, column)) if float(cell[column]) == least else _pair(cell, column) for cell in cells]


def _bold(text: str) -> str:
    mean, *error = text.split(" ± ")
    return " ± ".join([f"**{mean}**", *error])


def _pair(cell: Row, column: str) -> str:
    return plus_minus(float(cell[column]), float(cell["standard_error"]))


def _loss(cell: Row) -> str:
    return _pair(cell, "adjusted_loss") if float(cell["adjusted_loss"]) else "0"


def _large(value: float) -> str:
    if not math.isfinite(value):
        return "infinite"
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e") if value >= 1e7 else f"{value:,.0f}"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def main() -> None:
    """Fill the tables of all pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--report", type=Path, help="folder that `lintra report` has written")
    parser.add_argument("--measure", action="store_true", help="measure the regressions first")
    options = parser.parse_args()
    if options.measure:
        measure()
    for page in PAGES:
        write_atomic(page, fill(page.read_text(encoding="utf-8"), available_tables(options.report)).encode())


if __name__ == "__main__":
    main()
