"""The command line: thin verbs over the library."""

import math
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from lintra import bench as benchmarks
from lintra import paper, storage, terminal
from lintra.baselines import BASELINES, baseline
from lintra.evaluation import evaluate, evaluate_layers
from lintra.losses import Comparison, Estimate
from lintra.models import Rescaled
from lintra.predictor import AbstractPredictor
from lintra.problem import NoisyRegression

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Noise = Annotated[list[str], typer.Option("--noise", help="Noise prior, e.g. uniform(0,5); may be repeated.")]
Dim = Annotated[int, typer.Option(help="Number of inputs, d.")]
Context = Annotated[int, typer.Option(help="Number of examples, n.")]
Sequences = Annotated[int, typer.Option(help="Number of fresh sequences.")]
Seed = Annotated[int, typer.Option(help="Seed of the sequences.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON.")]
Methods = Annotated[list[str], typer.Option("--method", help="Baseline; may be repeated. Default: all.")]

COLUMNS = {
    "noise": "noise",
    "method": "method",
    "layers": "layers",
    "adjusted_loss": "adjusted loss",
    "standard_error": "± s.e.",
    "paper": "paper",
    "verdict": "against the paper",
    "median": "median",
    "trimmed_mean": "trimmed mean",
    "top_ten_share": "top ten share",
    "worst": "worst",
    "worse_than_zero": "worse than zero",
    "note": "note",
}


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
    tail: Annotated[bool, typer.Option(help="Also print what the tail of the losses looks like.")] = False,
    json: Json = False,
) -> None:
    """Adjusted loss of the oracle, the ridge baselines and the Bayes floor, beside the paper's figures."""
    rows = []
    for text in noise:
        problem = NoisyRegression(dim, context, text)
        keys = jax.random.split(jax.random.key(seed), 3)
        predictors, refused = _baselines(method, problem, keys[0])
        track = terminal.progress(str(problem.noise))
        comparison = evaluate(predictors, problem, num_sequences=sequences, key=keys[1], track=track)
        column = [_head("oracle", None, problem) | _estimate(Estimate(0.0, 0.0))]
        column += [_row(name, None, comparison, name, problem, tail) for name in predictors]
        column += [_refusal(name, problem, sentence) for name, sentence in refused.items()]
        if not json:
            _compare_with_paper(column, predictors, problem, keys[2])
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
    tail: Annotated[bool, typer.Option(help="Also print what the tail of the losses looks like.")] = False,
    json: Json = False,
) -> None:
    """Adjusted loss of models from files, on fresh sequences."""
    rows = []
    for path in model_file:
        model = storage.load(path)
        text = noise or storage.read_metadata(path)["noise"] or "uniform(0,5)"
        problem = NoisyRegression(model.dim, context or model.context, text)
        keys = jax.random.split(jax.random.key(seed))
        used = Rescaled(model) if rescale else model
        track = terminal.progress(path.name)
        if every_layer:
            losses = evaluate_layers(used, problem, num_sequences=sequences, key=keys[1], track=track)
            rows += [_row(model.family, int(layer), losses, layer, problem, tail) for layer in losses.losses]
        else:
            losses = evaluate({model.family: used}, problem, num_sequences=sequences, key=keys[1], track=track)
            rows.append(_row(model.family, model.num_layers, losses, model.family, problem, tail))
        if method:
            predictors, refused = _baselines(method, problem, keys[0])
            losses = evaluate(predictors, problem, num_sequences=sequences, key=keys[1], track=track)
            rows += [_row(name, None, losses, name, problem, tail) for name in predictors]
            rows += [_refusal(name, problem, sentence) for name, sentence in refused.items()]
    _show(rows, f"Adjusted loss, {sequences:,} sequences", json)


@app.command()
def bench(
    case: Annotated[list[str] | None, typer.Option(help="Case; may be repeated. Default: all.")] = None,
    json: Json = False,
) -> None:
    """Speed, ours against the reference, side by side in one run."""
    rows = [benchmarks.run(name) for name in case or benchmarks.CASES]
    columns = {"case": "case", "ours_ms": "ours, ms", "reference_ms": "reference, ms", "ratio": "ratio"}
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(rows, "CPU time", columns)


def main() -> None:
    """Run the command line; bad input ends in one sentence."""
    try:
        app()
    except (ValueError, OSError) as error:
        terminal.complain(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        terminal.complain("interrupted.")
        os._exit(130)


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


def _row(
    method: str, layers: int | None, comparison: Comparison, name: str, problem: NoisyRegression, tail: bool
) -> dict[str, Any]:
    row = _head(method, layers, problem) | _estimate(comparison.adjusted(name))
    return row | (vars(comparison.tail(name)) if tail else {})


def _head(method: str, layers: int | None, problem: NoisyRegression) -> dict[str, Any]:
    return {"method": method, "layers": layers, "noise": str(problem.noise)}


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"adjusted_loss": estimate.mean, "standard_error": estimate.standard_error}


def _refusal(name: str, problem: NoisyRegression, sentence: str) -> dict[str, Any]:
    nothing = {"adjusted_loss": None, "standard_error": None}
    return _head(name, None, problem) | nothing | {"note": sentence}


def _show(rows: list[dict[str, Any]], title: str, json: bool) -> None:
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(rows, title, COLUMNS)


def _compare_with_paper(
    rows: list[dict[str, Any]], predictors: dict[str, AbstractPredictor], problem: NoisyRegression, key: jax.Array
) -> None:
    """Add the paper's figure, and how far it is in standard errors of the paper's own protocol."""
    if (problem.dim, problem.context) != (10, 20):
        return
    printed = {name: paper.table1().get((name, None, str(problem.noise))) for name in predictors}
    shown = {name: predictors[name] for name, figure in printed.items() if figure is not None}
    if not shown:
        return
    protocol = evaluate(shown, problem, num_sequences=100_000, sampled_query=True, key=key)
    for row in rows:
        figure = printed.get(row["method"])
        if figure is None:
            continue
        error = math.hypot(protocol.adjusted(row["method"]).standard_error, row["standard_error"])
        away = max(abs(row["adjusted_loss"] - figure.value) - figure.rounding, 0.0)
        row["paper"] = f"{figure.value:g}"
        row["verdict"] = "level" if away <= 3 * error else f"{away / error:.1f} s.e. away"
