"""Growth of DIAG on a pool of sequences."""

import math
from collections.abc import Hashable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.families import to_family
from lintra.models.spec import ModelSpec
from lintra.training.batch import Batch
from lintra.training.growth.base import AbstractGrowth, FitSchedule
from lintra.training.least_squares import Parameters, SequenceLeastSquares
from lintra.training.perturbations import HalfScaledInputs
from lintra.training.sampling import sample_pool
from lintra.training.stage import Models, fingerprint
from lintra.training.validation import ValidationSet, sample_validation
from lintra.training.warm_starts import WarmStarts

_CAUCHY_SCALE = 100.0  # a loss far above that of a good model

GrowthData = tuple[FitSchedule, ValidationSet]
"""Fits to more and more sequences, and a validation set."""


class DiagonalGrowth(AbstractGrowth[GrowthData]):
    """DIAG, fitted to a pool of sequences.

    Args:
        name: Name under which the stage's model is known to later stages.
        key: Randomness.
        spec: The model to train.
        pool_size: Number of sequences, a multiple of 32,768. Positions are compared on a sixteenth of them.
        objective: `bayes` (default), `truth` or `query`.
        num_validation: Number of sequences of the validation set. Default: 16,384.
        num_restarts: Number of restarts at the last depth. Default: 24.
        screening_steps: Number of iterations of each restart. Default: 8.
        refinement_steps: Number of further iterations where the value is near the best one. Default: 25.
        from_stages: Names of earlier stages whose models are tried at the last depth too. Default: none.
        is_unit_blind: Whether the labels of each sequence are divided by their root mean square. Default: no.
    """

    num_unknowns: ClassVar[int] = 4
    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    spec: ModelSpec = eqx.field(static=True)
    pool_size: int = eqx.field(static=True, default=32_768)
    objective: str = eqx.field(static=True, default="bayes")
    num_validation: int = eqx.field(static=True, default=16_384)
    num_restarts: int = eqx.field(static=True, default=24)
    screening_steps: int = eqx.field(static=True, default=8)
    refinement_steps: int = eqx.field(static=True, default=25)
    from_stages: tuple[str, ...] = eqx.field(static=True, default=())
    is_unit_blind: bool = eqx.field(static=True, default=False)

    @property
    def new_layers(self) -> Float[np.ndarray, "c k"]:
        """`(p_x, p_y, q_x, q_y)`."""
        return np.asarray([[0.15, -0.15, 0.3, 0.3], [-0.15, -0.15, 0.3, -0.3]])

    @property
    def cache_key(self) -> Hashable:
        """The problem, the key, and how many sequences of which kind."""
        kind = self.pool_size, self.objective, self.num_validation, self.is_unit_blind
        return "sequences", fingerprint(self.spec.problem, self.key), *kind

    def prepare(self) -> GrowthData:
        """Draw sequences."""
        pool_key, signs_key, validation_key = jax.random.split(self.key, 3)
        problem, settings = self.spec.problem, {"objective": self.objective, "num_sequences": self.pool_size}
        pool = sample_pool(problem, **settings, perturbation=HalfScaledInputs(), key=pool_key)
        validation = sample_validation(problem, num_sequences=self.num_validation, key=validation_key)
        if self.is_unit_blind:
            pool = pool.unit_blind()
            validation = eqx.tree_at(lambda tree: tree.batch, validation, replace_fn=Batch.unit_blind)

        def fit(part: int, cauchy_scale: float = math.inf) -> SequenceLeastSquares:
            first = jnp.arange(self.pool_size // part)
            return SequenceLeastSquares.from_batch(pool.pick(first), signs_key, cauchy_scale)

        # Polishing on all sequences may meet one on which the model diverges, so large losses count less at first.
        polish = [fit(4, _CAUCHY_SCALE), fit(1, _CAUCHY_SCALE), fit(1)]
        return FitSchedule(screen=fit(16), shortlist=fit(8), polish=polish), validation

    def least_squares(self, data: GrowthData) -> FitSchedule:
        """On few sequences, more, and all."""
        return data[0]

    def full_depth_models(self, models: Models, warm_starts: WarmStarts) -> list[AbstractModel]:
        """Models of smaller families, which are DIAG models too, and one with fewer heads."""
        warm = [model for model in (warm_starts.smaller, warm_starts.fewer_heads) if model is not None]
        return [models[name] for name in self.from_stages] + warm

    def to_parameters(self, model: AbstractModel) -> Parameters:
        """Its p and q."""
        diagonal = to_family(model, self.spec.family, self.spec.num_heads)
        assert isinstance(diagonal, Diagonal)
        return jnp.concatenate([diagonal.p, diagonal.q], axis=-1)

    def from_parameters(self, parameters: Parameters) -> Diagonal:
        """DIAG with these p and q."""
        problem = self.spec.problem
        return Diagonal(parameters[..., :2], parameters[..., 2:], problem.num_examples, problem.dim)

    def validation_loss(self, parameters: Parameters, data: GrowthData) -> Float[Array, ""]:
        """Measured on the validation set."""
        return _validation_loss(data[1], self.from_parameters(parameters))


_validation_loss = jax.jit(ValidationSet.loss)
