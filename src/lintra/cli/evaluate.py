"""Commands that measure: baselines and models."""

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
    Context,
    Dim,
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
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate, evaluate_layers, require_memory
from lintra.evaluation.estimate import Estimate
from lintra.models.adapters import Rescaled
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import memory

Repetitions = Annotated[
    int, typer.Option(help="Also repeat the paper's protocol this often, 100,000 sequences with a sampled query.")
]
Methods = Annotated[list[str], typer.Option("--method", help="Baseline; may be repeated. Default: all.")]


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
    problems = [NoisyRegression(dim, context, text) for text in noise]
    for problem in problems:
        _check_sizes(problem, method, sequences, len(method), repetitions)
    rows, seeds = [], keys(seed)
    for problem in problems:
        predictors, refused = _baselines(method, problem, seeds[0])
        track = terminal.progress(str(problem.noise))
        comparison = evaluate(predictors, problem, num_sequences=sequences, key=seeds[1], track=track)
        column = [loss_rows.head("oracle", None, problem) | Estimate(0.0, 0.0).as_adjusted_loss()]
        column += [loss_rows.row(name, None, comparison, name, problem, tail) for name in predictors]
        column += [loss_rows.refusal(name, problem, sentence) for name, sentence in refused.items()]
        loss_rows.repeat(column, predictors, problem, repetitions, seeds[2], track)
        if not json:
            loss_rows.compare_with_paper(column, predictors, problem, sequences, seeds[2])
        rows += column
    show(rows, f"Adjusted loss ½E‖w − w_σ‖², n = {context}, d = {dim}, {sequences:,} sequences", json)


@app.command("evaluate")
def evaluate_command(
    model_name: Annotated[list[str], typer.Argument(metavar="MODEL...", help=MODEL)],
    noise: OwnNoise = None,
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
    """Adjusted loss of models, on fresh sequences."""
    seeds, found = keys(seed), []
    for name in model_name:
        model, prior = find_model(name, noise)
        problem = NoisyRegression(model.dim, model.context if context is None else context, prior)
        kept = max(1 + len(method), model.num_layers if every_layer else 0)
        _check_sizes(problem, method, sequences, kept, repetitions)
        found.append((name, model, problem))
    rows = []
    for name, model, problem in found:
        used = Rescaled(model) if rescale else model
        predictors, refused = _baselines(method, problem, seeds[0])
        measured = {model.family: used, **predictors}
        track = terminal.progress(Path(name).name)
        losses = evaluate(measured, problem, num_sequences=sequences, key=seeds[1], track=track)
        layers = {kind: model.num_layers if kind == model.family else None for kind in measured}
        column = [loss_rows.row(kind, layers[kind], losses, kind, problem, tail) for kind in measured]
        loss_rows.repeat(column, measured, problem, repetitions, seeds[2], track)
        if every_layer:
            by_layer = evaluate_layers(used, problem, num_sequences=sequences, key=seeds[1], track=track)
            column[:1] = [
                loss_rows.row(model.family, int(after), by_layer, after, problem, tail)
                for after in by_layer.losses
            ]
        column += [loss_rows.refusal(kind, problem, sentence) for kind, sentence in refused.items()]
        if len(model_name) > 1 and not json:
            column = [row | {"file": Path(name).name} for row in column]
        rows += column
    scaled = "rescaled to the training length" if rescale else "as printed"
    show(rows, f"Adjusted loss, {sequences:,} sequences, models used {scaled}", json)


def _check_sizes(
    problem: NoisyRegression, methods: list[str], sequences: int, num_kept: int, repetitions: int
) -> None:
    """Reject settings before any work."""
    for name in methods:
        arguments.one_of("method", name, tuple(BASELINES))
    memory.require_repetitions(arguments.whole_number("num_repetitions", repetitions, minimum=0), num_kept)
    require_memory(problem, sequences, num_kept)


def _baselines(
    names: list[str], problem: NoisyRegression, key: jax.Array
) -> tuple[dict[str, AbstractPredictor], dict[str, str]]:
    """The baselines that are defined for the problem, and for the others the sentence that says why not."""
    defined, refused = {}, {}
    for name in names:
        try:
            defined[name] = baseline(name, problem, key=key)
        except ValueError as error:
            refused[name] = str(error)
    return defined, refused
