"""Held-out sequences, on which models are compared while they are trained."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from lintra.models.base import AbstractModel
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.training.batch import Lesson, cast
from lintra.training.sampling import in_blocks, sample_with_bayes


class HeldOut(eqx.Module):
    """Sequences with the Bayes predictor's weights.

    The adjusted loss of a model is its mean distance to the Bayes predictor plus the floor, the Bayes
    predictor's own adjusted loss; the distance has far less noise than the adjusted loss measured directly.

    Attributes:
        lesson: The sequences, with the Bayes predictor's weights as targets.
        floor: The Bayes predictor's adjusted loss on these sequences.
        covariance: Λ; nothing means the identity.
    """

    lesson: Lesson
    floor: Float[Array, ""]
    covariance: Float[Array, "d d"] | None

    @property
    def loss_of_zero(self) -> Float[Array, ""]:
        """Adjusted loss of zero weights, which is about that of a model that has learned nothing."""
        return half_square(self.lesson.target, self.covariance).mean() + self.floor

    def loss(self, model: AbstractModel) -> Float[Array, ""]:
        """Adjusted loss of a model, infinite where it overflows."""
        weights = cast(model, self.lesson.gram.dtype).final(self.lesson.gram)
        distance = half_square(weights - self.lesson.target, self.covariance).mean()
        return jnp.where(jnp.isnan(distance), jnp.inf, distance + self.floor)


def sample_held_out(problem: NoisyRegression, key: Key[Array, ""], size: int) -> HeldOut:
    """Draw held-out sequences."""
    lesson, oracle = in_blocks(partial(sample_with_bayes, problem), key, size)
    floor = half_square(lesson.target - oracle, problem.covariance).mean()
    return HeldOut(lesson, floor, problem.covariance)
