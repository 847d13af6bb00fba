"""The command that measures speed."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lintra import arguments
from lintra.bench import cases, timing
from lintra.bench.costs import cost_plots, measure_costs
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import Json, check_folder
from lintra.display import Plot
from lintra.models.families import PAPER_FAMILIES


@app.command()
def bench(
    case: Annotated[list[str] | None, typer.Option(help="Case; may be repeated. Default: all.")] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Instead, our cost against batch, layers, d and n.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the table into this file (.svg, .png, .pdf).")] = None,
    regressions: Annotated[
        bool, typer.Option("--regressions", help="Instead, many small regressions, beside what people use.")
    ] = False,
    json: Json = False,
) -> None:
    """Speed, ours against the reference, side by side in one run, on one thread each."""
    if regressions:
        return _regressions(json)
    if case and (table or plot):
        raise ValueError("`case` compares two sides and `table` and `plot` show ours alone: ask for one.")
    for name in case or ():
        arguments.one_of("case", name, tuple(cases.CASES))
    rows = _costs(plot) if table or plot else _cases(case or list(cases.CASES))
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(rows, "CPU time (wall time for threads)", _COLUMNS)


_COLUMNS = {
    "case": "case",
    "ours_ms": "ours, ms",
    "reference_ms": "reference, ms",
    "ratio": "ratio",
    "axis": "against",
    "value": "value",
    **{f"{family}_ms": f"{family.upper()}, ms" for family in PAPER_FAMILIES},
    "sampling_ms": "sampling, ms",
}


def _regressions(json: bool) -> None:
    from lintra.bench.regressions import (  # imports scikit-learn, which is slow
        measure_lengths,
        measure_real,
        measure_synthetic,
    )

    tables = {
        "The paper's problem: 20 examples of 10 inputs, noise from uniform(0,5)": measure_synthetic(),
        "Adjusted loss against the number of examples, 8 inputs, noise from uniform(0,2√8)": measure_lengths(),
        "Real data: mean squared error of 20 examples' fits, in variances of the labels": measure_real(),
    }
    if json:
        return terminal.print_json(tables)
    for title, rows in tables.items():
        terminal.print_table(rows, title, {name: name.replace("_", " ") for name in rows[0]})


def _cases(names: list[str]) -> list[dict[str, Any]]:
    threaded = {name: timing.time_case(name) for name in names if name in cases.THREADED}
    _use_one_processor()
    return [threaded[name] if name in threaded else timing.time_case(name) for name in names]


def _costs(plot: Path | None) -> list[dict[str, Any]]:
    if plot and plot.suffix not in (".svg", ".png", ".pdf"):
        raise ValueError(f"`plot` must end in .svg, .png or .pdf, got {str(plot)!r}.")
    if plot:
        check_folder(plot.parent)
    _use_one_processor()
    with terminal.ProgressBar("measuring") as progress:
        rows = measure_costs(progress=progress)
    if plot:
        _draw(cost_plots(rows), plot)
    return rows


def _draw(plots: list[Plot], path: Path) -> None:
    from lintra.figures import curves  # imports matplotlib, which is slow
    from lintra.figures.style import save_picture, styled

    with styled():
        save_picture(curves.draw(plots, num_columns=2, sharey=True), path)


def _use_one_processor() -> None:
    message = timing.use_one_processor()
    if message:
        terminal.print_error(message)
