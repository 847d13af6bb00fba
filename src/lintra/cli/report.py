"""Commands that draw one figure, or everything on one page."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import ColumnSequences, Seed, ZooFile, check_folder, check_settings
from lintra.evaluation.measurement import Measurements
from lintra.runtime.cache import keep_compiled_programs
from lintra.runtime.processes import Processes, num_cores


@app.command()
def figure(
    number: Annotated[list[str], typer.Argument(help="Which: 1 to 8.")],
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path("figures"),
    zoo_file: ZooFile = None,
    sequences: ColumnSequences = 200_000,
    seed: Seed = 0,
) -> None:
    """Draw figures of the paper from the published models: CSV, PNG, PDF and SVG."""
    from lintra import figures  # imports matplotlib, for which commands that draw nothing need not wait

    for name in number:
        arguments.one_of("number", name, tuple(figures.FIGURES))
    check_settings(sequences, seed)
    kept = zoo.read(zoo_file)
    check_folder(out)
    keep_compiled_programs()
    measurements = Measurements(kept, sequences=sequences, seed=seed, track=terminal.progress)
    for name in number:
        for path in figures.make(name, measurements, out)[1]:
            terminal.say(str(path))


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("report"),
    zoo_file: ZooFile = None,
    sequences: ColumnSequences = 1_000_000,
    seed: Seed = 0,
) -> None:
    """Measure Table 1 and draw all figures from the published models, on one page: report.html."""
    check_settings(sequences, seed)
    kept = zoo.read(zoo_file)
    check_folder(out)
    from lintra.report import report as reports  # imports matplotlib

    keep_compiled_programs()
    measurements = Measurements(kept, sequences=sequences, seed=seed, track=terminal.progress)
    with Processes(num_cores()) as executor:
        terminal.say(f"The report is {reports.make(measurements, out, executor, terminal.say)}")
