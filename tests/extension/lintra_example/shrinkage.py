"""A figure: the adjusted loss of ridge regression against its penalty."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from lintra.arguments import KeyLike
from lintra.baselines import ConstantRidge
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.measurement import AbstractMeasurement, Results
from lintra.problem import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.collection import Zoo

CAPTION = "Adjusted loss of ridge regression against its penalty."
PENALTIES = 0.5, 2.0, 8.0, 32.0


@dataclass(frozen=True)
class Shrinkage(AbstractMeasurement[list[Row]]):
    """The loss at each penalty, for one noise prior."""

    noise: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 10_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure all penalties on the same sequences."""
        predictors = {str(penalty): ConstantRidge(penalty) for penalty in PENALTIES}
        losses = evaluate(predictors, NoisyRegression(noise=self.noise), num_sequences=num_sequences, key=key)
        return [{"penalty": float(name), "adjusted_loss": losses.adjusted(name).mean} for name in predictors]


NEEDS = (Shrinkage("loguniform(0.5,4)"),)


def compute(results: Results) -> list[Row]:
    """Return a row for every penalty."""
    return results[NEEDS[0]]


def draw(rows: list[Row]) -> Figure:
    """One curve."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot([row["penalty"] for row in rows], [row["adjusted_loss"] for row in rows])
    axes.set(xlabel="Penalty", ylabel="Adjusted loss", xscale="log")
    return figure
