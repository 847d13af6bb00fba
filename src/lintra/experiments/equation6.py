"""Eq. (6): does a model that is trained at one noise level become GD++, by its weights as well as its loss?"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.display import Row
from lintra.experiments.descents import best_models, excess_losses, label_scale, named_estimate, run_descent
from lintra.experiments.experiment import AbstractExperiment
from lintra.experiments.layer_tensors import LayerTensors
from lintra.models.base import AbstractModel
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.statistics.sampling import sample_statistics
from lintra.training.descent.batch_source import BatchSource
from lintra.training.descent.descent import Descent
from lintra.training.descent.schedule import Schedule
from lintra.training.descent.step import GradientGuard
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.loop import run_stages
from lintra.training.starts import RandomStarts

_OPTIMISERS = {"diag": "adam", "full": "soap"}
_DISTANCE_SEQUENCES = 16_384  # for the distance between two predictors


@dataclass(frozen=True)
class Equation6(AbstractExperiment):
    """DIAG by Adam and FULL by SOAP from random starts, at one noise level.

    Args:
        noise: Noise prior, at n = 20 and d = 10. Default: `fixed(2)`.
        families: Families. Default: DIAG and FULL.
        depths: Numbers of layers. Default: 1 to 4.
        num_starts: Number of starts of each model. Default: 6.
        scale: Standard deviation of the parameters at the start, for labels divided by theirs. Default: 0.2.
        num_steps: Number of steps. Default: 3,000.
        learning_rate: Rate, which falls along a cosine. Default: 0.02.
        batch_size: Number of sequences in a step. Default: 512.
        pool_size: Number of sequences that batches are drawn from. Default: 131,072.
        num_sequences: Number of fresh sequences on which losses are measured. Default: 131,072.
    """

    name: ClassVar[str] = "equation-6"
    noise: str = "fixed(2)"
    families: tuple[str, ...] = ("diag", "full")
    depths: tuple[int, ...] = (1, 2, 3, 4)
    num_starts: int = 6
    scale: float = 0.2
    num_steps: int = 3000
    learning_rate: float = 2e-2
    batch_size: int = 512
    pool_size: int = 131_072
    num_sequences: int = 131_072

    def parts(self) -> list[str]:
        """One part for each family and depth."""
        return [f"{family}-{depth}" for family in self.families for depth in self.depths]

    def run(self, part: str, progress: Progress = SILENT) -> list[Row]:
        """Train all starts of one model, and compare each with GD++."""
        family, depth = part.split("-")
        spec = ModelSpec(family, int(depth), NoisyRegression(noise=self.noise))
        key = jax.random.fold_in(jax.random.key(self.seed), self.parts().index(part))
        training_key, gdpp_key, evaluation_key = jax.random.split(key, 3)
        stage = self._stage(spec, training_key)
        models = best_models(stage, run_descent(stage, progress=progress))
        scale = label_scale(spec.problem)
        tensors = [LayerTensors.from_model(model, scale) for model in models]
        size = {"num_examples": spec.problem.num_examples, "dim": spec.problem.dim}
        best = run_stages([GDPlusPlusGrowth("gd++", gdpp_key, spec)])["gd++"]
        projections = [tensor.to_gdpp(**size) for tensor in tensors]
        settings: dict[str, Any] = {"num_sequences": self.num_sequences, "key": evaluation_key}
        losses = excess_losses(models, spec.problem, **settings)
        gdpp_losses = excess_losses([best, *projections], spec.problem, **settings)
        return [
            _row(family, int(depth), start, tensors[start], losses[start], gdpp_losses[start + 1], gdpp_losses[0])
            | _distances(models[start], best, projections[start], spec.problem, evaluation_key)
            for start in range(self.num_starts)
        ]

    def _stage(self, spec: ModelSpec, key: Key[Array, ""]) -> Descent:
        scale = label_scale(spec.problem)
        return Descent(
            spec.name,
            key,
            BatchSource(spec.problem, batch_size=self.batch_size, pool_size=self.pool_size, label_scale=scale),
            starts=RandomStarts(spec, self.num_starts, self.scale, label_scale=scale),
            num_steps=self.num_steps,
            schedule=Schedule(self.learning_rate, warmup_steps=200),
            optimiser=_OPTIMISERS[spec.family],
            guard=GradientGuard(clip_norm=0.25, max_norm=0.01, max_ratio=math.inf),
        )


def _row(
    family: str,
    depth: int,
    start: int,
    tensors: LayerTensors,
    losses: Float[np.ndarray, " b"],
    projected: Float[np.ndarray, " b"],
    gdpp: Float[np.ndarray, " b"],
) -> Row:
    """One start: its loss beside those of the best GD++ and of its projection, and the shares of its layers."""
    return {
        "family": family,
        "layers": depth,
        "start": start,
        **named_estimate("adjusted_loss", losses),
        **named_estimate("gdpp_loss", gdpp),
        **named_estimate("below_gdpp", gdpp - losses),
        **named_estimate("projection_loss", projected),
        "gdpp_share": tensors.gdpp_share,
        "label_share": tensors.label_share,
        "rest_share": tensors.rest_share,
        "omega": tensors.omega.tolist(),
    }


def _distances(
    model: AbstractModel,
    best: AbstractModel,
    projection: AbstractModel,
    problem: NoisyRegression,
    key: Key[Array, ""],
) -> Row:
    """Distance of predictions to those of the best GD++ and of the projection, relative: E‖w − v‖² / E‖v‖²."""
    stats, _ = sample_statistics(problem, (_DISTANCE_SEQUENCES,), key=key)
    weights = np.asarray(model.weights(stats))
    row = {}
    for name, other in (("best", best), ("projection", projection)):
        reference = np.asarray(other.weights(stats))
        squares, size = np.sum((weights - reference) ** 2, axis=-1), np.mean(np.sum(reference**2, axis=-1))
        row |= named_estimate(f"distance_{name}", squares / size)
    return row
