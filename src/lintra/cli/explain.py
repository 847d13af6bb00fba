"""Commands that read models: an explanation in words, tables and pictures, and the algorithm as a program."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.anatomy import explanation as explanations
from lintra.anatomy.explanation import Explanation
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
from lintra.display import Curve, Plot, Row, plus_minus
from lintra.evaluation.adjusted_loss import require_memory
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.cache import enable_compilation_cache
from lintra.runtime.files import write_atomic

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
    """What a model does: its ω, how layers rescale and step, the noise it acts on, what it needs, its damping."""
    read, prior = find_model(model, noise)
    key = keys(seed)[0]
    require_memory(NoisyRegression(read.dim, read.num_examples, prior), sequences, 4 * read.num_layers + 3)
    if out is not None:
        check_folder(out)
    enable_compilation_cache()
    with terminal.ProgressBar("ablation") as progress:
        explanation = explanations.explain(read, prior, num_sequences=sequences, key=key, progress=progress)
    if json:
        terminal.print_json(vars(explanation))
    else:
        for title, rows in explanation.tables().items():
            rows = [_with_errors(row) for row in rows]
            terminal.print_table(rows, title, {name: name.replace("_", " ") for name in rows[0]})
        for message in explanation.sentences:
            print(f"- {message}")
    if out is not None:
        for path in draw(_plots(explanation), out, f"explain-{_title(model)}"):
            terminal.print_message(str(path))


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
    read, noise = zoo.find(model)
    text = export(read, title=_title(model), noise=noise or "unknown", form=form)
    if out is None:
        sys.stdout.write(text)
    else:
        write_atomic(out, text.encode())
        terminal.print_message(f"Written to '{out}'.")


def _with_errors(row: Row) -> Row:
    """Join every number with the standard error that a later column has of it, as one text."""
    texts, before = dict(row), ""
    for name in row:
        if not name.endswith("standard_error"):
            before = name
            continue
        number = name.removesuffix("standard_error").removesuffix("_") or before
        error = texts.pop(name)
        if row[number] is not None and error is not None:
            texts[number] = plus_minus(row[number], error)
    return texts


def _title(model: str) -> str:
    return Path(model).name.removesuffix(".safetensors")


def _plots(explanation: Explanation) -> list[Plot]:
    """Return plots of the implied noise, the rescaling and the step against the noise level."""
    noise_stds = [row["noise_std"] for row in explanation.implied_noise]
    implied = [
        Curve("model", noise_stds, [row["implied_noise"] for row in explanation.implied_noise]),
        Curve("Bayes", noise_stds, [row["bayes_implied_noise"] for row in explanation.implied_noise]),
        Curve("truth", noise_stds, noise_stds, dashed=True),
    ]
    plots = [Plot("The noise level it acts on", "Noise level σ", "Acts as if σ were", implied, "linear", "linear")]
    for column, title in (("rescaling", "Rescaling, 1 + d"), ("step", "Step along the gradient")):
        by_layer = [
            Curve(f"layer {row['layer']}", *_column(explanation, row["layer"], column))
            for row in explanation.omegas
        ]
        plots.append(Plot(title, "Noise level σ", title, by_layer, "linear", "linear"))
    return plots


def _column(explanation: Explanation, layer: int, column: str) -> tuple[list[float], list[float]]:
    rows = [row for row in explanation.behaviour if row["layer"] == layer]
    return [row["noise_std"] for row in rows], [row[column] for row in rows]
