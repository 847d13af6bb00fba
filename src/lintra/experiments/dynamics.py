"""Training dynamics: loss and ω against steps, by the paper's recipe with fewer steps."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float

from lintra.display import Row
from lintra.experiments.descents import run_descent
from lintra.experiments.experiment import AbstractExperiment
from lintra.experiments.layer_tensors import LayerTensors
from lintra.models.base import AbstractModel
from lintra.models.spec import ModelSpec
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.training.descent.descent import Descent
from lintra.training.descent.state import DescentState
from lintra.training.recipes.paper import Paper
from lintra.training.validation import ValidationSet


@dataclass(frozen=True)
class Dynamics(AbstractExperiment):
    """One start of each model by Adam as in §6, with the rate raised as the number of steps is lowered.

    Args:
        noise: Noise prior, at n = 20 and d = 10. Default: `uniform(0,5)`.
        models: Families and numbers of layers. Default: DIAG with 4 layers, and FULL with 4.
        num_steps: Number of steps; the paper has 200,000. Default: 10,000.
        learning_rate: Adam's rate on P and Q as printed; the paper has 1e-4. Default: 4e-4.
        record_every: Number of steps between two rows. Default: 100.
    """

    name: ClassVar[str] = "dynamics"
    noise: str = "uniform(0,5)"
    models: tuple[tuple[str, int], ...] = (("diag", 4), ("full", 4))
    num_steps: int = 10_000
    learning_rate: float = 4e-4
    record_every: int = 100

    def parts(self) -> list[str]:
        """One part for each model."""
        return [f"{family}-{depth}" for family, depth in self.models]

    def run(self, part: str, progress: Progress = SILENT) -> list[Row]:
        """Train one model, and record its loss on validation sequences and its ω."""
        family, depth = part.rsplit("-", 1)
        spec = ModelSpec(family, int(depth), NoisyRegression(noise=self.noise))
        recipe = Paper(num_starts=1, num_steps=self.num_steps, learning_rate=self.learning_rate)
        key = jax.random.fold_in(jax.random.key(self.seed), self.parts().index(part))
        (stage,) = recipe.stages(spec, key)
        assert isinstance(stage, Descent)
        stage = replace(stage, validate_every=self.record_every)
        validation, rows = stage.prepare()[1], []

        def observe(state: DescentState) -> None:
            rows.append(_row(spec, state, validation))

        run_descent(stage, progress=progress, observe=observe)
        return rows


def _row(spec: ModelSpec, state: DescentState, validation: ValidationSet) -> Row:
    """The present model: its loss on the validation set, and its ω for a Gram matrix divided by n."""
    model = jax.tree.map(lambda leaf: leaf[0].astype(float), state.models)
    losses = np.asarray(_validation_losses(validation, model))
    tensors = LayerTensors.from_model(model)
    return {
        "family": spec.family,
        "layers": spec.num_layers,
        "noise": str(spec.problem.noise),
        "step": int(state.step),
        "adjusted_loss": float(losses.mean() + validation.bayes_floor),
        "standard_error": float(losses.std(ddof=1) / losses.size**0.5),
        "omega": tensors.omega.tolist(),
        "rest_share": tensors.rest_share,
    }


@jax.jit
def _validation_losses(validation: ValidationSet, model: AbstractModel) -> Float[Array, " b"]:
    """Losses relative to the Bayes predictor, whose own loss is added later."""
    difference = model.final_weights(validation.batch.mean_gram) - validation.batch.target
    return half_square(difference)
