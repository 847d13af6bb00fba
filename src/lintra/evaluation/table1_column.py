"""Table 1, column by column: models and baselines on the same fresh sequences, beside the printed loss."""

import math
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
from lintra.evaluation.orderings import Ordering, find_orderings
from lintra.models.base import AbstractModel
from lintra.models.families import PAPER_FAMILIES, smallest_family
from lintra.models.spec import ModelSpec
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.collection import Zoo

_NOT_MEASURED = Estimate(math.nan, math.nan)

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
        median_of_means: Median of the means of ten parts of the sequences, which few sequences do not dominate.
        num_exploded: Number of sequences whose adjusted loss is above 5d or not finite.
        num_sequences: Number of sequences.
        printed_safe: Whether the model as printed exploded on no sequence of the gate, by its card. `None` for
            baselines and where the card does not say so.
        selected_family: The smallest family that contains the model, judged by its weights. `None` for a baseline.
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
    median_of_means: Estimate = _NOT_MEASURED
    num_exploded: int = 0
    num_sequences: int = 0
    printed_safe: bool | None = None
    selected_family: str | None = None

    @property
    def is_safe(self) -> bool:
        """Whether the model as printed is known to be safe: no explosion, neither at the gate nor here."""
        return bool(self.printed_safe) and self.num_exploded == 0

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
            "protocol_median": self.protocol.median,
            "verdict": self.verdict,
            "is_dominated": self.tail.is_dominated,
            "worst": self.tail.worst,
            "num_exploded": self.num_exploded,
            "num_sequences": self.num_sequences,
        }

    def to_details(self) -> Row:
        """Return what `table1-details.csv` has: the comparison with the printed loss, and the tail."""
        name = {"method": self.method, "layers": self.num_layers, "noise": self.noise, "verdict": self.verdict}
        quantiles = {
            "protocol_median": self.protocol.median,
            "protocol_5": self.protocol.low,
            "protocol_95": self.protocol.high,
            "protocol_top_share": self.protocol.top_share,
        }
        loss = {"adjusted_loss": self.adjusted_loss, "standard_error": self.standard_error}
        safety = {
            "num_exploded": self.num_exploded,
            "num_sequences": self.num_sequences,
            "printed_safe": self.printed_safe,
            "selected_family": self.selected_family,
        }
        damped_loss, tail = self.damped or (None, None)
        damped = {
            "damped_loss": damped_loss and damped_loss.mean,
            "damped_standard_error": damped_loss and damped_loss.standard_error,
            "damped_worst": tail and tail.worst,
        }
        return name | quantiles | loss | _median_of_means(self) | asdict(self.tail) | safety | damped


def _median_of_means(row: Table1Row) -> Row:
    of_means = row.median_of_means
    return {"median_of_means": of_means.mean, "median_of_means_error": of_means.standard_error}


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
        """Return method, number of layers and losses of every cell."""
        names = ("noise", "method", "layers", "adjusted_loss", "standard_error", "protocol_median")
        return [
            {name: row.to_row()[name] for name in names}
            | {"protocol_5": row.protocol.low, "protocol_95": row.protocol.high}
            | {"is_dominated": row.protocol.is_dominated}
            | _median_of_means(row)
            for row in self.rows
        ]


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
            replace(
                _row(measured, spec.name, spec.family, spec.num_layers),
                damped=damped.get(spec.name),
                printed_safe=zoo.cards[spec.name].get("printed_safe"),
                selected_family=smallest_family(model),
            )
            for spec, model in models.items()
        ]
        rows += [_row(measured, name, name, None) for name in TABLE1_BASELINES]
        return Table1Column(self.noise, rows, find_orderings(models, measured))


def models_of(zoo: Zoo, noise: str, depths: range) -> dict[ModelSpec, AbstractModel]:
    """Return the best models of a noise prior that are in the zoo, at the size of Table 1, with one head."""
    specs = [ModelSpec(family, depth, noise) for family in PAPER_FAMILIES for depth in depths]
    return {spec: zoo.load(spec.name) for spec in specs if spec.name in zoo.cards}


def _row(measured: Comparison, name: str, method: str, num_layers: int | None) -> Table1Row:
    problem, estimate, quantiles = measured.problem, measured.adjusted(name), measured.protocol(name)
    noise = str(problem.noise)
    printed = paper.printed_table1().get((method, num_layers, noise))
    gdpp_floor = float(closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem))
    return Table1Row(
        method=method,
        num_layers=num_layers,
        noise=noise,
        adjusted_loss=estimate.mean,
        standard_error=estimate.standard_error,
        paper=None if printed is None else printed.value,
        bayes_floor=measured.adjusted("bayes").mean,
        protocol=quantiles,
        verdict="" if printed is None else paper.verdict(quantiles, printed),
        tail=measured.tail(name),
        gdpp_floor=gdpp_floor,
        median_of_means=Estimate.median_of_means(measured.losses(name)),
        num_exploded=measured.num_exploded(name),
        num_sequences=measured.num_sequences,
    )
