"""The command line: thin verbs over the library."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from lintra import bench as benchmarks
from lintra import checks, paper, storage, terminal
from lintra import rows as rows_of
from lintra.baselines import BASELINES, baseline
from lintra.evaluation import evaluate, evaluate_layers
from lintra.losses import Estimate
from lintra.models import Rescaled
from lintra.predictor import AbstractPredictor
from lintra.problem import NoisyRegression
from lintra.training import RECIPES, Task, TrainingFailedError
from lintra.training import train as train_model

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Noise = Annotated[list[str], typer.Option("--noise", help="Noise prior, e.g. uniform(0,5); may be repeated.")]
Dim = Annotated[int, typer.Option(help="Number of inputs, d.")]
Context = Annotated[int, typer.Option(help="Number of examples, n.")]
Sequences = Annotated[int, typer.Option(help="Number of fresh sequences.")]
Seed = Annotated[int, typer.Option(help="Seed of the sequences.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON.")]
Tail = Annotated[bool, typer.Option("--tail", help="Also print what the tail of the losses looks like.")]
Repetitions = Annotated[
    int, typer.Option(help="Also repeat the paper's protocol this often, 100,000 sequences with a sampled query.")
]
Methods = Annotated[list[str], typer.Option("--method", help="Baseline; may be repeated. Default: all.")]


@app.callback()
def _lintra() -> None:
    """Linear transformers as in-context learners."""


@app.command()
def baselines(
    noise: Noise = list(paper.NOISES),  # noqa: B006
    method: Methods = list(BASELINES),  # noqa: B006
    dim: Dim = 10,
    context: Context = 20,
    sequences: Sequences = 100_000,
    seed: Seed = 0,
    repetitions: Repetitions = 0,
    tail: Tail = False,
    json: Json = False,
) -> None:
    """Adjusted loss of the oracle, the ridge baselines and the Bayes floor, beside the paper's figures."""
    rows = []
    for text in noise:
        problem = NoisyRegression(dim, context, text)
        keys = _keys(seed)
        predictors, refused = _baselines(method, problem, keys[0])
        track = terminal.progress(str(problem.noise))
        comparison = evaluate(predictors, problem, num_sequences=sequences, key=keys[1], track=track)
        column = [rows_of.head("oracle", None, problem) | rows_of.estimate_cells(Estimate(0.0, 0.0))]
        column += [rows_of.row(name, None, comparison, name, problem, tail) for name in predictors]
        column += [rows_of.refusal(name, problem, sentence) for name, sentence in refused.items()]
        rows_of.repeat(column, predictors, problem, repetitions, keys[2], track)
        if not json:
            rows_of.compare_with_paper(column, predictors, problem, sequences, keys[2])
        rows += column
    _show(rows, f"Adjusted loss ½E‖w − w_σ‖², n = {context}, d = {dim}, {sequences:,} sequences", json)


@app.command("evaluate")
def evaluate_command(
    model_file: Annotated[list[Path], typer.Argument(help="Model files written by lintra.")],
    noise: Annotated[str | None, typer.Option(help="Noise prior; default: the model's own.")] = None,
    context: Annotated[int | None, typer.Option(help="Number of examples; default: as in training.")] = None,
    rescale: Annotated[bool, typer.Option(help="Rescale the Gram matrix to the training length.")] = False,
    every_layer: Annotated[bool, typer.Option(help="Also measure after every layer.")] = False,
    method: Annotated[list[str], typer.Option("--method", help="Baseline to measure as well.")] = [],  # noqa: B006
    sequences: Sequences = 100_000,
    seed: Seed = 0,
    repetitions: Repetitions = 0,
    tail: Tail = False,
    json: Json = False,
) -> None:
    """Adjusted loss of models from files, on fresh sequences."""
    rows = []
    for path in model_file:
        model, metadata = storage.load_with_metadata(path)
        own_noise = metadata["noise"] or "uniform(0,5)"
        problem = NoisyRegression(
            model.dim, model.context if context is None else context, own_noise if noise is None else noise
        )
        keys = _keys(seed)
        used = Rescaled(model) if rescale else model
        predictors, refused = _baselines(method, problem, keys[0])
        measured = {model.family: used, **predictors}
        track = terminal.progress(path.name)
        losses = evaluate(measured, problem, num_sequences=sequences, key=keys[1], track=track)
        layers = {name: model.num_layers if name == model.family else None for name in measured}
        column = [rows_of.row(name, layers[name], losses, name, problem, tail) for name in measured]
        rows_of.repeat(column, measured, problem, repetitions, keys[2], track)
        if every_layer:
            by_layer = evaluate_layers(used, problem, num_sequences=sequences, key=keys[1], track=track)
            column[:1] = [
                rows_of.row(model.family, int(name), by_layer, name, problem, tail) for name in by_layer.losses
            ]
        column += [rows_of.refusal(name, problem, sentence) for name, sentence in refused.items()]
        if len(model_file) > 1 and not json:
            column = [row | {"file": path.name} for row in column]
        rows += column
    scaled = "rescaled to the training length" if rescale else "as printed"
    _show(rows, f"Adjusted loss, {sequences:,} sequences, models used {scaled}", json)


@app.command()
def train(
    variant: Annotated[str, typer.Option(help="full, diag or gd++.")],
    layers: Annotated[int, typer.Option(help="Number of layers.")],
    noise: Annotated[str, typer.Option(help="Noise prior, e.g. uniform(0,5).")],
    recipe: Annotated[str, typer.Option(help=f"How to train: {' or '.join(RECIPES)}.")] = "fast",
    heads: Annotated[int, typer.Option(help="Number of heads.")] = 1,
    dim: Dim = 10,
    context: Context = 20,
    seeds: Annotated[int | None, typer.Option(help="Starts side by side, of which the best is kept.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="query, truth or bayes; default: the recipe's own.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of Adam; default: the recipe's own.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Rate of Adam; default: the recipe's own.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: runs/ and the model's name.")] = None,
    sequences: Annotated[int, typer.Option(help="Fresh sequences to measure the result on.")] = 1_000_000,
    json: Json = False,
) -> None:
    """Train a model; a run that was interrupted goes on. Its folder holds settings, metrics and the model."""
    task = Task(variant, layers, noise, heads=heads, dim=dim, context=context)
    given = {"seeds": seeds, "objective": objective, "steps": steps, "learning_rate": learning_rate}
    settings = {name: value for name, value in given.items() if value is not None}
    checks.one_of("--recipe", recipe, tuple(RECIPES))
    _keys(seed)
    folder = out or Path("runs") / (task.name + (f"-{recipe}" if recipe != "fast" else "") + f"-seed{seed}")
    terminal.keep_compiled_programs()
    with terminal.Training(task.name) as shown:
        trained = train_model(
            task,
            RECIPES[recipe](**settings),
            seed=seed,
            folder=folder,
            num_sequences=sequences,
            report=shown.report,
            say=terminal.say,
            track=shown.track,
        )
    row = {"method": variant, "layers": layers, "noise": task.noise, **trained.figures(), "file": str(folder)}
    _show([row], f"Adjusted loss, {sequences:,} fresh sequences", json)
    if trained.complaint:
        raise TrainingFailedError(trained.complaint)


@app.command()
def bench(
    case: Annotated[list[str] | None, typer.Option(help="Case; may be repeated. Default: all.")] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Instead, our cost against batch, layers, d and n.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the table into this file (.svg, .png, .pdf).")] = None,
    json: Json = False,
) -> None:
    """Speed, ours against the reference, side by side in one run, on one thread each."""
    if case and (table or plot):
        raise ValueError("`--case` compares two sides and `--table` and `--plot` show ours alone: ask for one.")
    rows = _costs(plot) if table or plot else _cases(case or list(benchmarks.CASES))
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(rows, "CPU time (wall time for threads)", BENCH_COLUMNS)


BENCH_COLUMNS = {
    "case": "case",
    "ours_ms": "ours, ms",
    "reference_ms": "reference, ms",
    "ratio": "ratio",
    "axis": "against",
    "value": "value",
    "full_ms": "FULL, ms",
    "diag_ms": "DIAG, ms",
    "gd++_ms": "GD++, ms",
    "sampling_ms": "sampling, ms",
}


def _cases(names: list[str]) -> list[dict[str, Any]]:
    threaded = {name: benchmarks.run(name) for name in names if name in benchmarks.THREADED}
    _use_one_processor()
    return [threaded[name] if name in threaded else benchmarks.run(name) for name in names]


def _costs(plot: Path | None) -> list[dict[str, Any]]:
    if plot and plot.suffix not in (".svg", ".png", ".pdf"):
        raise ValueError(f"`--plot` must end in .svg, .png or .pdf, got {str(plot)!r}.")
    _use_one_processor()
    rows = benchmarks.costs(track=terminal.progress("costs"))
    if plot:
        benchmarks.draw(rows, plot)
    return rows


def _use_one_processor() -> None:
    sentence = benchmarks.use_one_processor()
    if sentence:
        terminal.complain(sentence)


_INTERRUPTED = 130


def main() -> None:
    """Run the command line; bad input ends in one sentence."""
    try:
        app()
    except (ValueError, TrainingFailedError) as error:
        terminal.complain(str(error))
        sys.exit(2)
    except OSError as error:
        place = f"'{error.filename}' cannot be used: " if error.filename else ""
        terminal.complain(f"{place}{error.strerror or error}. Files that were there before are whole.")
        sys.exit(2)
    except SystemExit as stop:
        if stop.code != _INTERRUPTED:
            raise
        terminal.complain("interrupted.")
        os._exit(_INTERRUPTED)  # at once: work may be under way in XLA's threads


def _keys(seed: int) -> jax.Array:
    """Keys for tuning, for measuring and for the paper's protocol."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"`--seed` must be a whole number from 0 to 2^63 - 1, got {seed}.")
    return jax.random.split(jax.random.key(seed), 3)


def _baselines(
    names: list[str], problem: NoisyRegression, key: jax.Array
) -> tuple[dict[str, AbstractPredictor], dict[str, str]]:
    """The baselines that are defined for the problem, and for the others the sentence that says why not."""
    unknown = [name for name in names if name not in BASELINES]
    if unknown:
        raise ValueError(f"`--method` must be one of {', '.join(BASELINES)}, got {unknown[0]!r}.")
    defined, refused = {}, {}
    for name in names:
        try:
            defined[name] = baseline(name, problem, key=key)
        except ValueError as error:
            refused[name] = str(error)
    return defined, refused


def _show(rows: list[dict[str, Any]], title: str, json: bool) -> None:
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(rows, title, rows_of.COLUMNS)
