"""Commands that reproduce the paper: publish a sweep, list the zoo, draw figures, write the report."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import checks, cores, memory, paper, publishing, table1, terminal, zoo
from lintra.cli.base import STORE, Json, Seed, app, check_file, check_folder, keys
from lintra.compiled import keep_compiled_programs
from lintra.measurements import Measurements
from lintra.sweep import GRIDS, Processes, Store

ZooFile = Annotated[Path | None, typer.Option("--zoo", help="A zoo of your own; default: the published one.")]
ColumnSequences = Annotated[int, typer.Option("--sequences", help="Fresh sequences for a column of Table 1.")]


@app.command()
def publish(
    out: Annotated[Path, typer.Argument(help="The zoo to write, by custom *.safetensors.")],
    grid: Annotated[
        list[str] | None, typer.Option(help="What was trained; may be repeated; default: table1 and figure8.")
    ] = None,
    store: Annotated[Path, typer.Option(help="The sweep's store.")] = STORE,
    sequences: ColumnSequences = 1_000_000,
    seed: Seed = 0,
) -> None:
    """Make a zoo from the models of a sweep: measure them on fresh sequences and write weights and cards."""
    grids = grid or ["table1", "figure8"]
    for name in grids:
        checks.one_of("grid", name, tuple(GRIDS))
    _check_settings(sequences, seed)
    if not store.is_dir():
        raise FileNotFoundError(f"`store` '{store}' is not there. Train it first: lintra sweep {grids[0]}")
    check_file(out)
    keep_compiled_programs()
    chains = [chain for name in grids for chain in GRIDS[name]()]
    with Processes(cores.count()) as executor:
        track = terminal.progress("measuring")
        missing = publishing.publish(
            chains, Store(store, terminal.say), out, executor, num_sequences=sequences, seed=seed, track=track
        )
    for name in missing:
        terminal.say(f"{name} is not in the store.")
    terminal.say(f"{len(zoo.Zoo(out).cards)} models in '{out}'.")


@app.command("zoo")
def zoo_command(zoo_file: ZooFile = None, json: Json = False) -> None:
    """The published models, with how they were made and how good they are."""
    kept = zoo.read(zoo_file)
    names = ("noise", "layers", "seeds", "seconds", "adjusted_loss", "standard_error", "worst")
    rows = [
        {"name": name} | (card if json else {key: card[key] for key in names}) for name, card in kept.cards.items()
    ]
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(
            rows, f"{len(rows)} models", {name: name.replace("_", " ") for name in ("name", *names)}
        )


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
        checks.one_of("number", name, tuple(figures.FIGURES))
    _check_settings(sequences, seed)
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
    _check_settings(sequences, seed)
    kept = zoo.read(zoo_file)
    check_folder(out)
    from lintra import report as reports  # imports matplotlib

    keep_compiled_programs()
    measurements = Measurements(kept, sequences=sequences, seed=seed, track=terminal.progress)
    with Processes(cores.count()) as executor:
        terminal.say(f"The report is {reports.make(measurements, out, executor, terminal.say)}")


def _check_settings(sequences: int, seed: int) -> None:
    """Reject settings before any work: in a column of Table 1 every method has two losses a sequence."""
    methods = 7 * len(paper.VARIANTS) + len(table1.BASELINES)
    memory.require_losses(checks.whole_number("num_sequences", sequences), 2 * methods)
    keys(seed)
