"""Validation sequences, on which models are compared while they are trained."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from lintra.models.base import AbstractModel
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.training.batch import Batch, cast
from lintra.training.sampling import in_blocks, sample_with_bayes


class ValidationSet(eqx.Module):
    """Sequences with the Bayes predictor's weights.

    The adjusted loss of a model is its mean loss relative to the Bayes predictor plus the Bayes predictor's own
    adjusted loss. This has far less noise than the adjusted loss measured directly.

    Attributes:
        batch: The sequences, with the Bayes predictor's weights as targets.
        bayes_floor: The Bayes predictor's adjusted loss on these sequences.
        covariance: Λ. `None`: the identity.
    """

    batch: Batch
    bayes_floor: Float[Array, ""]
    covariance: Float[Array, "d d"] | None

    @property
    def loss_of_zero(self) -> Float[Array, ""]:
        """Adjusted loss of zero weights, about that of an untrained model."""
        return half_square(self.batch.target, self.covariance).mean() + self.bayes_floor

    def loss(self, model: AbstractModel) -> Float[Array, ""]:
        """Adjusted loss of a model, infinite where it overflows."""
        weights = cast(model, self.batch.mean_gram.dtype).final_weights(self.batch.mean_gram)
        loss = half_square(weights - self.batch.target, self.covariance).mean()
        return jnp.where(jnp.isnan(loss), jnp.inf, loss + self.bayes_floor)


def sample_validation(problem: NoisyRegression, *, num_sequences: int, key: Key[Array, ""]) -> ValidationSet:
    """Draw validation sequences."""
    batch, oracle = in_blocks(partial(sample_with_bayes, problem), key, num_sequences)
    bayes_floor = half_square(batch.target - oracle, problem.covariance).mean()
    return ValidationSet(batch, bayes_floor, problem.covariance)
