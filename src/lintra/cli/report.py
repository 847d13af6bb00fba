"""Commands that draw one figure, or everything on one page."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import ColumnSequences, Seed, ZooFile, check_folder, check_settings
from lintra.evaluation.measurement import measure_all
from lintra.runtime.cache import enable_compilation_cache
from lintra.runtime.processes import ProcessExecutor, num_cores


@app.command()
def figure(
    number: Annotated[list[str], typer.Argument(help="Which: 1 to 8, robustness or dynamics.")],
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path("figures"),
    zoo_file: ZooFile = None,
    sequences: ColumnSequences = 200_000,
    seed: Seed = 0,
) -> None:
    """Draw figures from the published models: CSV, PNG, PDF and SVG."""
    from lintra import figures  # imports matplotlib, which is slow

    for name in number:
        arguments.one_of("number", name, figures.FIGURES)
    check_settings(sequences, seed)
    models = zoo.read(zoo_file)
    check_folder(out)
    enable_compilation_cache()
    needs = [need for name in number for need in figures.FIGURES[name].NEEDS]
    with terminal.ProgressBar("figures") as progress:
        results = measure_all(needs, models, num_sequences=sequences, key=seed, progress=progress)
    for name in number:
        for path in figures.draw_figure(name, results, out):
            terminal.print_message(str(path))


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("report"),
    zoo_file: ZooFile = None,
    sequences: ColumnSequences = 1_000_000,
    seed: Seed = 0,
) -> None:
    """Measure Table 1 and draw all figures from the published models, on one page: report.html."""
    check_settings(sequences, seed)
    models = zoo.read(zoo_file)
    check_folder(out)
    from lintra.report.report import write_report  # imports matplotlib

    enable_compilation_cache()
    with ProcessExecutor(num_cores()) as executor, terminal.ProgressBar("report") as progress:
        settings = {"executor": executor, "num_sequences": sequences, "key": seed, "progress": progress}
        path = write_report(models, out, **settings)
    terminal.print_message(f"The report is {path}")
