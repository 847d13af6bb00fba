"""Table 1, column by column: models and baselines on the same fresh sequences, beside the printed loss."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import jax

from lintra.arguments import KeyLike, random_key
from lintra.baselines import TABLE1_BASELINES, baseline
from lintra.display import Row
from lintra.evaluation import closed_form, paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate, ProtocolQuantiles, Tail
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.models.base import AbstractModel
from lintra.models.families import PAPER_FAMILIES
from lintra.models.spec import ModelSpec
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.collection import Zoo

_ROUNDING = 1e-15  # of a loss, where labels are of size √d

DEPTHS = range(1, 8)
"""Numbers of layers in Table 1."""


@dataclass(frozen=True)
class Table1Row:
    """One cell of Table 1.

    Attributes:
        method: Family or baseline.
        num_layers: Number of layers; `None` for a baseline.
        noise: The noise prior.
        adjusted_loss: Mean of `½‖w − w_σ‖²`.
        standard_error: Its standard error.
        paper: The printed loss; `None` if there is none.
        bayes_floor: The Bayes predictor's adjusted loss on the same sequences.
        protocol: Quantiles of the paper's protocol, repeated.
        verdict: How the loss compares with the printed one; empty without a printed one.
        tail: Tail of the loss.
        gdpp_floor: The least possible loss of GD++, at any depth.
        damped: The adjusted loss of the damped model on the same sequences, and its tail. `None` for baselines and
            models without thresholds. All other numbers are of the model as printed.
    """

    method: str
    num_layers: int | None
    noise: str
    adjusted_loss: float
    standard_error: float
    paper: float | None
    bayes_floor: float
    protocol: ProtocolQuantiles
    verdict: str
    tail: Tail
    gdpp_floor: float
    damped: tuple[Estimate, Tail] | None = None

    def to_row(self) -> Row:
        """Return what `table1.csv` has."""
        return {
            "method": self.method,
            "layers": self.num_layers,
            "noise": self.noise,
            "adjusted_loss": self.adjusted_loss,
            "standard_error": self.standard_error,
            "paper": self.paper,
            "bayes_floor": self.bayes_floor,
        }

    def to_details(self) -> Row:
        """Return what `table1-details.csv` has: the comparison with the printed loss, and the tail."""
        name = {"method": self.method, "layers": self.num_layers, "noise": self.noise, "verdict": self.verdict}
        quantiles = {
            "protocol_median": self.protocol.median,
            "protocol_5": self.protocol.low,
            "protocol_95": self.protocol.high,
        }
        loss, tail = self.damped or (None, None)
        damped = {
            "damped_loss": loss and loss.mean,
            "damped_standard_error": loss and loss.standard_error,
            "damped_worst": tail and tail.worst,
        }
        return name | quantiles | asdict(self.tail) | damped


@dataclass(frozen=True)
class Ordering:
    """A paired difference that should not be positive: of a larger family or a deeper model and a smaller one.

    Attributes:
        larger: The model that should not be worse.
        smaller: The other model.
        difference: Loss of the larger minus loss of the smaller, on the same sequences.
    """

    larger: ModelSpec
    smaller: ModelSpec
    difference: Estimate

    @property
    def holds(self) -> bool:
        """At most two standard errors above zero, or rounding."""
        return self.difference.mean <= max(2 * self.difference.standard_error, _ROUNDING)


@dataclass(frozen=True)
class Table1Column:
    """What was measured at one noise prior."""

    noise: str
    rows: list[Table1Row]
    orderings: list[Ordering]

    def losses(self) -> dict[tuple[str, int | None], float]:
        """Return the adjusted losses by method and number of layers."""
        return {(row.method, row.num_layers): row.adjusted_loss for row in self.rows}

    def to_rows(self) -> list[Row]:
        """Return method, number of layers and loss of every cell."""
        names = ("noise", "method", "layers", "adjusted_loss", "standard_error")
        return [{name: row[name] for name in names} for row in map(Table1Row.to_row, self.rows)]


@dataclass(frozen=True)
class Column(AbstractMeasurement[Table1Column]):
    """A column of Table 1: models and baselines of a noise prior.

    Attributes:
        noise: The noise prior.
    """

    noise: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> Table1Column:
        """Measure the models that are in the zoo, and the baselines."""
        problem = NoisyRegression(noise=self.noise)
        own_key = fold_in_words(random_key(key), "measurements", "column", self.noise)
        tuning_key, measuring_key = jax.random.split(own_key)
        models = models_of(zoo, self.noise, DEPTHS)
        predictors: dict[str, AbstractPredictor] = {spec.name: model for spec, model in models.items()}
        predictors |= {name: baseline(name, problem, key=tuning_key) for name in TABLE1_BASELINES}
        measured = evaluate(
            predictors, problem, num_sequences=num_sequences, protocol=True, key=measuring_key, progress=progress
        )
        with_thresholds = {
            spec.name: model.with_damping() for spec, model in models.items() if model.stored_damping is not None
        }
        damped = dict[str, tuple[Estimate, Tail]]()
        if with_thresholds:
            again = evaluate(with_thresholds, problem, num_sequences=num_sequences, key=measuring_key)
            damped = {name: (again.adjusted(name), again.tail(name)) for name in with_thresholds}
        rows = [
            replace(_row(measured, spec.name, spec.family, spec.num_layers), damped=damped.get(spec.name))
            for spec in models
        ]
        rows += [_row(measured, name, name, None) for name in TABLE1_BASELINES]
        return Table1Column(self.noise, rows, _orderings(models, measured))


def models_of(zoo: Zoo, noise: str, depths: range) -> dict[ModelSpec, AbstractModel]:
    """Return the best models of a noise prior that are in the zoo, at the size of Table 1, with one head."""
    specs = [ModelSpec(family, depth, noise) for family in PAPER_FAMILIES for depth in depths]
    return {spec: zoo.load(spec.name) for spec in specs if spec.name in zoo.cards}


def _row(measured: Comparison, name: str, method: str, num_layers: int | None) -> Table1Row:
    problem, estimate, quantiles = measured.problem, measured.adjusted(name), measured.protocol(name)
    noise = str(problem.noise)
    printed = paper.printed_table1().get((method, num_layers, noise))
    gdpp_floor = float(closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem))
    verdict = ""
    if printed is not None:
        verdict = paper.verdict(quantiles, printed, gdpp_floor if method == "gd++" else 0.0)
    return Table1Row(
        method=method,
        num_layers=num_layers,
        noise=noise,
        adjusted_loss=estimate.mean,
        standard_error=estimate.standard_error,
        paper=None if printed is None else printed.value,
        bayes_floor=measured.adjusted("bayes").mean,
        protocol=quantiles,
        verdict=verdict,
        tail=measured.tail(name),
        gdpp_floor=gdpp_floor,
    )


def _orderings(models: Mapping[ModelSpec, AbstractModel], measured: Comparison) -> list[Ordering]:
    """Compare deeper models with shallower ones, and larger families with smaller ones."""
    by_size = {(spec.family, spec.num_layers): spec for spec in models}
    orderings = []
    for (family, depth), spec in by_size.items():
        smaller = PAPER_FAMILIES.index(family) - 1
        for size in ((family, depth - 1), (PAPER_FAMILIES[smaller] if smaller >= 0 else "", depth)):
            if size in by_size:
                other = by_size[size]
                orderings.append(Ordering(spec, other, measured.difference(spec.name, other.name)))
    return orderings
