"""Commands that read models: an account in words, tables and pictures, and the algorithm as a program."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.anatomy.explanation import Account, account
from lintra.anatomy.program import FORMATS, export
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import (
    MODEL,
    Json,
    OwnNoise,
    Seed,
    Sequences,
    check_file,
    check_folder,
    draw,
    find_model,
    keys,
)
from lintra.display import Curve, Plot
from lintra.evaluation.adjusted_loss import require_memory
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.cache import keep_compiled_programs
from lintra.runtime.files import write_aside

Model = Annotated[str, typer.Argument(help=MODEL)]


@app.command()
def explain(
    model: Model,
    noise: OwnNoise = None,
    out: Annotated[Path | None, typer.Option(help="Folder for pictures; default: none are drawn.")] = None,
    sequences: Sequences = 65_536,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """What a model does: its ω, how it scales, steps and remembers, the noise it believes in, what it needs."""
    found, prior = find_model(model, noise)
    key = keys(seed)[0]
    require_memory(NoisyRegression(found.dim, found.context, prior), sequences, 4 * found.num_layers)
    if out is not None:
        check_folder(out)
    keep_compiled_programs()
    track = terminal.progress("without one ω")
    told = account(found, prior, num_sequences=sequences, key=key, track=track)
    if json:
        terminal.print_json(vars(told))
    else:
        for title, rows in told.tables().items():
            terminal.print_table(rows, title, {name: name.replace("_", " ") for name in rows[0]})
        for sentence in told.sentences:
            print(f"- {sentence}")
    if out is not None:
        for path in draw(_plots(told), out, f"explain-{_title(model)}"):
            terminal.say(str(path))


@app.command("export")
def export_command(
    model: Model,
    form: Annotated[str, typer.Option("--format", help=f"{', '.join(FORMATS)}.")] = "numpy",
    out: Annotated[Path | None, typer.Option(help="File to write; default: the screen.")] = None,
) -> None:
    """Write the algorithm that a model is: as a program that needs NumPy alone, as pseudo-code, or as LaTeX."""
    arguments.one_of("form", form, FORMATS)
    if out is not None:
        check_file(out)
    found, noise = zoo.find(model)
    text = export(found, title=_title(model), noise=noise or "unknown", form=form)
    if out is None:
        sys.stdout.write(text)
    else:
        write_aside(out, text.encode())
        terminal.say(f"Written to '{out}'.")


def _title(model: str) -> str:
    return Path(model).name.removesuffix(".safetensors")


def _plots(told: Account) -> list[Plot]:
    """What it believes, how it scales and how it steps, against the noise level."""
    stds = [row["std"] for row in told.beliefs]
    believed = [
        Curve("model", stds, [row["believed"] for row in told.beliefs]),
        Curve("Bayes", stds, [row["bayes_believed"] for row in told.beliefs]),
        Curve("truth", stds, stds, dashed=True),
    ]
    plots = [
        Plot("The noise level it acts on", "Noise level σ", "Acts as if σ were", believed, "linear", "linear")
    ]
    for column, title in (("rescaling", "Rescaling, 1 + d"), ("step", "Step along the gradient")):
        by_layer = [Curve(f"layer {row['layer']}", *_column(told, row["layer"], column)) for row in told.omegas]
        plots.append(Plot(title, "Noise level σ", title, by_layer, "linear", "linear"))
    return plots


def _column(told: Account, layer: int, column: str) -> tuple[list[float], list[float]]:
    rows = [row for row in told.behaviour if row["layer"] == layer]
    return [row["std"] for row in rows], [row[column] for row in rows]
