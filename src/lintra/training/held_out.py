"""Held-out sequences, on which models are compared while they are trained."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from lintra.baselines import Bayes, oracle_weights
from lintra.models import AbstractModel
from lintra.objective import half_square
from lintra.problem import NoisyRegression
from lintra.statistics import sample_statistics


class HeldOut(eqx.Module):
    """Sequences with the Bayes predictor's weights.

    The adjusted loss of a model is its mean distance to the Bayes predictor plus the floor, the Bayes
    predictor's own adjusted loss; the distance has far less noise than the adjusted loss measured directly.

    Attributes:
        gram: Gram matrices divided by the context length.
        target: The Bayes predictor's weights.
        floor: The Bayes predictor's adjusted loss on these sequences.
        covariance: Λ; nothing means the identity.
    """

    gram: Float[Array, "b e e"]
    target: Float[Array, "b d"]
    floor: Float[Array, ""]
    covariance: Float[Array, "d d"] | None

    def loss(self, model: AbstractModel) -> Float[Array, ""]:
        """Adjusted loss of a model, infinite where it overflows."""
        model = jax.tree.map(lambda leaf: leaf.astype(self.gram.dtype), model)
        distance = half_square(model.final(self.gram) - self.target, self.covariance).mean()
        return jnp.where(jnp.isnan(distance), jnp.inf, distance + self.floor)


@partial(jax.jit, static_argnames="size")
def sample_held_out(problem: NoisyRegression, key: Key[Array, ""], size: int) -> HeldOut:
    """Draw held-out sequences."""
    stats, truth = sample_statistics(problem, key, (size,))
    target = Bayes(problem.noise).weights(stats)
    floor = half_square(target - oracle_weights(stats, truth.noise_std), problem.covariance).mean()
    return HeldOut(stats.gram / problem.context, target, floor, problem.covariance)
