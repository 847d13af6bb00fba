"""Commands that measure baselines and models."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import jax
import typer

from lintra import arguments
from lintra.baselines import BASELINES, baseline
from lintra.cli import loss_rows, terminal
from lintra.cli.app import app
from lintra.cli.options import (
    MODEL,
    Dim,
    Examples,
    Json,
    Noise,
    OwnNoise,
    Seed,
    Sequences,
    Tail,
    find_model,
    keys,
    show,
)
from lintra.display import Row
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate, require_memory
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate
from lintra.models.adapters import Rescaled
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import memory

Repetitions = Annotated[
    int,
    typer.Option(
        "--protocol",
        "--repetitions",
        help="Also repeat the paper's protocol this many times: 100,000 sequences with a sampled query.",
    ),
]
Methods = Annotated[list[str], typer.Option("--method", help="Baseline; may be repeated. Default: all.")]


@app.command()
def baselines(
    noise: Noise = list(paper.NOISES),  # noqa: B006
    method: Methods = list(BASELINES),  # noqa: B006
    dim: Dim = 10,
    num_examples: Examples = 20,
    sequences: Sequences = 100_000,
    seed: Seed = 0,
    repetitions: Repetitions = 0,
    tail: Tail = False,
    json: Json = False,
) -> None:
    """Adjusted loss of the oracle, the ridge baselines and the Bayes floor, beside the printed losses."""
    problems = [NoisyRegression(dim, num_examples, text) for text in noise]
    for problem in problems:
        _check_sizes(problem, method, sequences, len(method), repetitions)
    rows, random_keys = [], keys(seed)
    for problem in problems:
        predictors, undefined = _baselines(method, problem, random_keys[0])
        with terminal.ProgressBar(str(problem.noise)) as progress:
            printed = _printed(problem, dict.fromkeys(predictors), json)
            comparison = evaluate(
                predictors,
                problem,
                num_sequences=sequences,
                protocol=bool(printed),
                key=random_keys[1],
                progress=progress,
            )
            oracle = Estimate(0.0, 0.0).as_adjusted_loss() | {"is_dominated": False}
            column = [loss_rows.head("oracle", None, problem) | oracle]
            column += [loss_rows.loss_row(name, None, comparison, name, tail=tail) for name in predictors]
            column += [loss_rows.undefined_row(name, problem, reason) for name, reason in undefined.items()]
            _add_protocol(column, predictors, problem, repetitions, random_keys[2], progress)
        _add_printed(column, comparison, printed)
        rows += column
    show(rows, f"Adjusted loss ½E‖w − w_σ‖², n = {num_examples}, d = {dim}, {sequences:,} sequences", json)


@app.command("evaluate")
def evaluate_command(
    model_name: Annotated[list[str], typer.Argument(metavar="MODEL...", help=MODEL)],
    noise: OwnNoise = None,
    num_examples: Annotated[
        int | None, typer.Option("--examples", "--context", help="Number of examples; default: as in training.")
    ] = None,
    rescale: Annotated[bool, typer.Option(help="Rescale the Gram matrix to the training length.")] = False,
    every_layer: Annotated[bool, typer.Option(help="Also measure after every layer.")] = False,
    method: Annotated[list[str], typer.Option("--method", help="Baseline to measure as well.")] = [],  # noqa: B006
    sequences: Sequences = 100_000,
    seed: Seed = 0,
    repetitions: Repetitions = 0,
    tail: Tail = False,
    json: Json = False,
) -> None:
    """Adjusted loss of models on fresh sequences, beside the printed losses."""
    random_keys, models = keys(seed), []
    for name in model_name:
        model, prior = find_model(name, noise)
        problem = NoisyRegression(model.dim, model.num_examples if num_examples is None else num_examples, prior)
        num_kept = len(method) + (model.num_layers if every_layer else 1)
        _check_sizes(problem, method, sequences, num_kept, repetitions)
        models.append((name, model, problem))
    rows = []
    for name, model, problem in models:
        used = Rescaled(model) if rescale else model
        predictors, undefined = _baselines(method, problem, random_keys[0])
        measured = {model.family: used, **predictors}
        with terminal.ProgressBar(Path(name).name) as progress:
            depths = {kind: model.num_layers if kind == model.family else None for kind in measured}
            printed = _printed(problem, depths, json or rescale or model.num_heads > 1)
            losses = evaluate(
                measured,
                problem,
                num_sequences=sequences,
                every_layer=every_layer,
                protocol=bool(printed),
                key=random_keys[1],
                progress=progress,
            )
            column = [
                loss_rows.loss_row(kind, layer or depths[kind], losses, kind, layer, tail=tail)
                for kind in measured
                for layer in losses.layers(kind) or (None,)
            ]
            last = [row for row in column if row["layers"] == depths[row["method"]]]
            _add_protocol(last, measured, problem, repetitions, random_keys[2], progress)
        _add_printed(last, losses, printed)
        column += [loss_rows.undefined_row(kind, problem, reason) for kind, reason in undefined.items()]
        if len(model_name) > 1 and not json:
            column = [row | {"file": Path(name).name} for row in column]
        rows += column
    scaled = "rescaled to the training length" if rescale else "as printed"
    show(rows, f"Adjusted loss, {sequences:,} sequences, models used {scaled}", json)


def _check_sizes(
    problem: NoisyRegression, methods: list[str], num_sequences: int, num_kept: int, num_repetitions: int
) -> None:
    """Reject settings before any work."""
    for name in methods:
        arguments.one_of("method", name, BASELINES)
    memory.require_repetitions(arguments.whole_number("num_repetitions", num_repetitions, minimum=0), num_kept)
    require_memory(problem, num_sequences, num_kept)


def _baselines(
    names: list[str], problem: NoisyRegression, key: jax.Array
) -> tuple[dict[str, AbstractPredictor], dict[str, str]]:
    """Return the baselines that are defined for the problem, and for the others the reason why they are not."""
    defined, undefined = {}, {}
    for name in names:
        try:
            defined[name] = baseline(name, problem, key=key)
        except ValueError as error:
            undefined[name] = str(error)
    return defined, undefined


def _printed(problem: NoisyRegression, depths: Mapping[str, int | None], without: bool) -> list[str]:
    """Return the methods that Table 1 has for this problem; none for JSON or models used in another way."""
    if without:
        return []
    return [name for name, depth in depths.items() if loss_rows.has_printed_loss(problem, name, depth)]


def _add_printed(rows: list[Row], measured: Comparison, printed: list[str]) -> None:
    for row in rows:
        if row["method"] in printed:
            loss_rows.add_printed_loss(row, measured.protocol(row["method"]))


def _add_protocol(
    rows: list[Row],
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    num_repetitions: int,
    key: jax.Array,
    progress: terminal.ProgressBar,
) -> None:
    """Add quantiles of the paper's protocol, repeated, if asked for."""
    if num_repetitions:
        settings = {"num_repetitions": num_repetitions, "key": key, "progress": progress}
        loss_rows.add_protocol(rows, loss_rows.protocol_quantiles(predictors, problem, **settings))
