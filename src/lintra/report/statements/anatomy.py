"""What statements need of a model's parameters and function: structure, implied noise, ablations, distances."""

from dataclasses import dataclass

import numpy as np

from lintra.anatomy.ablation import ablate
from lintra.anatomy.equivalence import compare
from lintra.anatomy.nearest_ridge import implied_noise
from lintra.anatomy.structure import matrix_structures
from lintra.arguments import KeyLike, random_key
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.evaluation.noise_profile import SEQUENCES_PER_LEVEL
from lintra.evaluation.trimmed_losses import TrimmedMeans
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.models.full import Full
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.statistics.sampling import sample_statistics
from lintra.zoo.collection import Zoo

_NOISE_STDS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
_ABLATION_SEQUENCES = 65_536


@dataclass(frozen=True)
class Structures(AbstractMeasurement[list[Row]]):
    """How diagonal every P and Q of a model is, and the effective rank of the rest; needs no sequences.

    Attributes:
        name: Name of the model.
    """

    name: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Read the model."""
        del num_sequences, key, progress
        return [structure.to_row() for structure in matrix_structures(zoo.load(self.name))]


@dataclass(frozen=True)
class ImpliedNoise(AbstractMeasurement[list[Row]]):
    """The noise level whose ridge solution is nearest to a model's weights, at each true noise level.

    Attributes:
        name: Name of the model.
    """

    name: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure it on 4,096 contexts at each noise level."""
        del num_sequences, progress
        own_key = fold_in_words(random_key(key), "measurements", "implied noise", self.name)
        rows = implied_noise(zoo.load(self.name), zoo.card(self.name)["noise"], _NOISE_STDS, key=own_key)
        names = ("noise_std", "implied_noise", "standard_error")
        return [{name: row[name] for name in names} for row in rows]


@dataclass(frozen=True)
class WithoutOmega(AbstractMeasurement[TrimmedMeans]):
    """Trimmed mean loss of a model, and of the model without ω_xy and without ω_yy in all layers.

    Outputs are `model`, `xy` and `yy`.

    Attributes:
        name: Name of the model.
    """

    name: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> TrimmedMeans:
        """Measure it at the noise prior of the model's training."""
        model, noise = zoo.load(self.name), zoo.card(self.name)["noise"]
        own_key = fold_in_words(random_key(key), "measurements", "without omega", self.name)
        measured = evaluate(
            {"model": model} | {omega: _without(model, omega) for omega in ("xy", "yy")},
            NoisyRegression(noise=noise),
            num_sequences=min(num_sequences, _ABLATION_SEQUENCES),
            key=own_key,
            progress=progress,
        )
        return TrimmedMeans.from_losses(measured.adjusted_losses)


def _without(model: AbstractModel, omega: str) -> Full:
    """The model without one ω in all layers: each layer from the model without it in that layer."""
    layers = [ablate(model, layer, omega).matrices() for layer in range(1, model.num_layers + 1)]
    P, Q = (np.stack([parts[which][layer] for layer, parts in enumerate(layers)]) for which in (0, 1))
    with in_64_bits():
        return Full.from_matrices(P, Q, model.num_examples)


@dataclass(frozen=True)
class ModelDistance(AbstractMeasurement[list[Row]]):
    """How far two models of one noise prior are from being one function.

    A row has the trimmed mean of `½‖w − w'‖²` on the same sequences with its standard error, and the relative
    difference of their effective tensors after the best rotation of the inputs, which needs no sequences.

    Attributes:
        name: Name of a model.
        other: Name of the other model.
    """

    name: str
    other: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure the distance on one block of sequences."""
        del num_sequences, progress
        one, other = (zoo.load(name) for name in (self.name, self.other))
        own_key = fold_in_words(random_key(key), "measurements", "distance", self.name, self.other)
        problem = NoisyRegression(noise=zoo.card(self.name)["noise"])
        with in_64_bits():
            stats, _ = sample_statistics(problem, (SEQUENCES_PER_LEVEL,), key=own_key)
            distances = np.asarray(half_square(one.weights(stats) - other.weights(stats)))
        distance = TrimmedMeans.from_losses({("distance", None): distances}).estimate("distance")
        return [
            {
                "distance": distance.mean,
                "standard_error": distance.standard_error,
                "tensor_difference": compare(one, other).difference,
            }
        ]
