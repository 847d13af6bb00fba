"""Table 1: every model and baseline on the same fresh sequences, beside the paper's figure and the Bayes floor.

The paper's figures are means over 100,000 sequences with one sampled query each. So they are compared with that
protocol repeated: a cell is *level* with the paper where the 5–95 % range of its repetitions meets what the
printed figure may stand for, *below* where it ends before, and *above* where it begins after.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax
from jaxtyping import Array, Key

from lintra.baselines import baseline
from lintra.evaluation import closed_form, paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate, Tail
from lintra.models import families
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Track

_ENOUGH = 5  # repetitions, to speak of quantiles
_ROUNDING = 1e-15  # of a loss, where labels are of size √d

BASELINES = ("const-ridge", "ada-ridge", "tuned-ridge", "bayes")

Models = Mapping[tuple[str, int], AbstractModel]
"""Models of one noise prior by family and number of layers."""


@dataclass(frozen=True)
class Row:
    """One cell of the table.

    Attributes:
        method: Family or baseline.
        layers: Number of layers; nothing for a baseline.
        noise: The noise prior.
        adjusted_loss: Mean of `½‖w − w_σ‖²`.
        standard_error: Its standard error.
        paper: The paper's figure, if it has one.
        bayes_floor: The Bayes predictor's adjusted loss on the same sequences.
        protocol: Median, 5 % and 95 % quantile of the paper's protocol repeated.
        verdict: `below`, `level` or `above` the paper; `floor` where the paper's figure lies below what is
            possible for GD++.
        tail: What the mean hides.
        floor: The least that is possible for GD++, at any depth.
    """

    method: str
    layers: int | None
    noise: str
    adjusted_loss: float
    standard_error: float
    paper: float | None
    bayes_floor: float
    protocol: tuple[float, float, float]
    verdict: str
    tail: Tail
    floor: float


@dataclass(frozen=True)
class Ordering:
    """A paired difference that should not be positive: of a larger family or a deeper model and a smaller one.

    Attributes:
        larger: Family and layers of the one that should not be worse.
        smaller: Family and layers of the other.
        noise: The noise prior.
        difference: Loss of the larger minus loss of the smaller, on the same sequences.
    """

    larger: tuple[str, int]
    smaller: tuple[str, int]
    noise: str
    difference: Estimate

    @property
    def holds(self) -> bool:
        """At most two standard errors above zero, or rounding."""
        return self.difference.mean <= max(2 * self.difference.standard_error, _ROUNDING)


@dataclass(frozen=True)
class Column:
    """What was measured at one noise prior."""

    noise: str
    rows: list[Row]
    orderings: list[Ordering]


def column(
    noise: str,
    models: Models,
    *,
    num_sequences: int = 1_000_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> Column:
    """Measure the models and baselines of one noise prior."""
    problem = NoisyRegression(noise=noise)
    tuning_key, measuring_key = jax.random.split(key)
    predictors = {name: baseline(name, problem, key=tuning_key) for name in BASELINES}
    named = {_name(*place): model for place, model in models.items()}
    measured = evaluate(
        named | predictors, problem, num_sequences=num_sequences, protocol=True, key=measuring_key, track=track
    )
    rows = [_row(method, layers, measured, problem) for method, layers in models]
    rows += [_row(name, None, measured, problem) for name in BASELINES]
    return Column(str(problem.noise), rows, _orderings(models, measured, problem))


def _name(method: str, layers: int | None) -> str:
    return method if layers is None else f"{method}-{layers}"


def _row(method: str, layers: int | None, measured: Comparison, problem: NoisyRegression) -> Row:
    name, noise = _name(method, layers), str(problem.noise)
    estimate = measured.adjusted(name)
    protocol = _protocol(measured, name)
    printed = paper.table1().get((method, layers, noise))
    floor = float(closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem))
    return Row(
        method,
        layers,
        noise,
        estimate.mean,
        estimate.standard_error,
        None if printed is None else printed.value,
        measured.adjusted("bayes").mean,
        protocol,
        "" if printed is None else _verdict(method, protocol, printed, floor),
        measured.tail(name),
        floor,
    )


def _protocol(measured: Comparison, name: str) -> tuple[float, float, float]:
    """Median, 5 % and 95 % quantile of the paper's protocol; by the normal law where repetitions are few."""
    values = measured.protocol[name]
    if len(values) >= _ENOUGH * 100_000:
        repeated = measured.repeated(name)
        return (repeated.median, *repeated.interval)
    middle, error = float(values.mean()), (1 / 100_000 + 1 / len(values)) ** 0.5
    spread = 1.645 * float(values.std()) * error
    return middle, middle - spread, middle + spread


def _verdict(method: str, protocol: tuple[float, float, float], printed: paper.Printed, floor: float) -> str:
    _, low, high = protocol
    if method == "gd++" and printed.value + printed.rounding < floor:
        return "floor"
    if high < printed.value - printed.rounding:
        return "below"
    return "level" if low <= printed.value + printed.rounding else "above"


def _orderings(models: Models, measured: Comparison, problem: NoisyRegression) -> list[Ordering]:
    """Larger families against smaller ones, and deeper models against shallower ones."""
    pairs = []
    for variant, layers in models:
        smaller = families.VARIANTS.index(variant) - 1
        pairs.append(((variant, layers), (variant, layers - 1)))
        pairs.append(((variant, layers), (families.VARIANTS[smaller], layers) if smaller >= 0 else None))
    return [
        Ordering(larger, other, str(problem.noise), measured.difference(_name(*larger), _name(*other)))
        for larger, other in pairs
        if other in models
    ]


def figures(row: Row) -> dict[str, Any]:
    """What `table1.csv` has of a row."""
    columns = ("method", "layers", "noise", "adjusted_loss", "standard_error", "paper", "bayes_floor")
    return {name: getattr(row, name) for name in columns}


def details(row: Row) -> dict[str, Any]:
    """How a row compares with the paper: the protocol repeated, the verdict, and the tail."""
    place = {"method": row.method, "layers": row.layers, "noise": row.noise, "verdict": row.verdict}
    protocol = dict(zip(("protocol_median", "protocol_5", "protocol_95"), row.protocol, strict=True))
    return place | protocol | asdict(row.tail)
