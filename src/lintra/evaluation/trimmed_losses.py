"""Trimmed means of losses on the same sequences, which no single sequence can dominate."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from lintra.arguments import KeyLike, random_key
from lintra.baselines import baseline
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.comparison import Output
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress, track
from lintra.zoo.collection import UnknownModelError, Zoo

TRIMMED_SHARE = 1e-3
"""Share of the sequences, those with the largest losses of a predictor, that its trimmed mean leaves out."""


@dataclass(frozen=True, eq=False)
class TrimmedMeans:
    """Trimmed means of the losses of several predictors on the same sequences.

    Attributes:
        outputs: Name of each predictor, and the layer whose prediction is measured (`None` for the last one).
        means: Mean loss without the largest thousandth, shape (k,).
        covariance: Covariance of these means, shape (k, k).
    """

    outputs: tuple[Output, ...]
    means: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]

    @classmethod
    def from_losses(cls, losses: Mapping[Output, Float[np.ndarray, " n"]]) -> "TrimmedMeans":
        """Compute trimmed means and their covariance.

        A trimmed mean has the influence function of the winsorised losses `min(x, t)`, t the largest loss that is
        kept, divided by the share that is kept. Their sample covariance over n is that of the means.

        Args:
            losses: The loss of every sequence, by predictor and layer, on the same sequences.

        Returns:
            The trimmed means. Where more than a thousandth of the losses are infinite, mean and errors are not
            finite.

        >>> losses = {("a", None): np.append(np.ones(1999), 1e9), ("b", None): np.zeros(2000)}
        >>> TrimmedMeans.from_losses(losses).difference("a", "b").mean
        1.0
        """
        values = np.stack(list(losses.values()))  # (k, n)
        num_sequences = values.shape[1]
        num_kept = max(num_sequences - int(TRIMMED_SHARE * num_sequences), 1)
        ordered = np.sort(values, axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            means = ordered[:, :num_kept].mean(axis=1)
            winsorised = np.minimum(values, ordered[:, num_kept - 1 : num_kept])
            covariance = np.atleast_2d(np.cov(winsorised)) / num_sequences * (num_sequences / num_kept) ** 2
        return cls(tuple(losses), means, covariance)

    def estimate(self, name: str, layer: int | None = None) -> Estimate:
        """Return the trimmed mean of a predictor, after a layer or at the end."""
        index = self._index((name, layer))
        return Estimate(float(self.means[index]), float(self.covariance[index, index]) ** 0.5)

    def difference(self, one: str | Output, other: str | Output) -> Estimate:
        """Return the paired difference of two trimmed means, negative where `one` is better than `other`."""
        i, j = self._index(one), self._index(other)
        with np.errstate(invalid="ignore", over="ignore"):
            variance = self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j]
            # rounding may leave a difference of equal losses with a variance just below zero
            error = np.sqrt(np.maximum(variance, 0.0))
            return Estimate(float(self.means[i] - self.means[j]), float(error))

    def ratio(self, one: str | Output, other: str | Output) -> Estimate:
        """Return one trimmed mean divided by another, with the error of a ratio to first order.

        `var(a/b) ≈ (var a + r² var b − 2 r cov(a, b)) / b²` with r = a/b.
        """
        i, j = self._index(one), self._index(other)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            ratio = self.means[i] / self.means[j]
            variance = self.covariance[i, i] + ratio**2 * self.covariance[j, j] - 2 * ratio * self.covariance[i, j]
            return Estimate(float(ratio), float(np.sqrt(np.maximum(variance, 0.0)) / self.means[j]))

    def _index(self, output: str | Output) -> int:
        name, layer = (output, None) if isinstance(output, str) else output
        if (name, layer) not in self.outputs:
            after = "" if layer is None else f" after layer {layer}"
            raise UnknownModelError(f"{name}{after} is missing.")
        return self.outputs.index((name, layer))


@dataclass(frozen=True)
class TrimmedLosses(AbstractMeasurement[dict[str, TrimmedMeans]]):
    """Trimmed mean losses of models and baselines on the same sequences, by the noise prior of the sequences.

    The inputs, true weights and standardised noise are the same at every fixed noise level.

    Attributes:
        noise: The noise prior that baselines are tuned for.
        models: Names of models. Those that are not in the zoo are left out.
        baselines: Names of baselines.
        sampled: The noise priors of the sequences.
        num_sequences: Number of sequences at each of them, unless fewer are asked for.
        every_layer: Whether to measure the prediction after every layer.
    """

    noise: str
    models: tuple[str, ...]
    baselines: tuple[str, ...]
    sampled: tuple[str, ...]
    num_sequences: int
    every_layer: bool = False

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> dict[str, TrimmedMeans]:
        """Measure the models that are in the zoo, as printed, and the baselines."""
        own_key = fold_in_words(random_key(key), "measurements", "trimmed", self.noise)
        tuning_key, measuring_key = jax.random.split(own_key)
        predictors: dict[str, AbstractPredictor] = {
            name: zoo.load(name) for name in self.models if name in zoo.cards
        }
        if not predictors:
            raise UnknownModelError(f"No model at {self.noise} is in the zoo.")
        problem = NoisyRegression(noise=self.noise)
        predictors |= {name: baseline(name, problem, key=tuning_key) for name in self.baselines}
        results = {}
        for noise in track(self.sampled, progress, "trimmed losses"):
            measured = evaluate(
                predictors,
                NoisyRegression(noise=noise),
                num_sequences=min(num_sequences, self.num_sequences),
                every_layer=self.every_layer,
                key=measuring_key,
            )
            results[noise] = TrimmedMeans.from_losses(measured.adjusted_losses)
        return results
