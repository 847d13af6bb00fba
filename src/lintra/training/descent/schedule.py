"""Learning rate schedule."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


@dataclass(frozen=True)
class Schedule:
    """Learning rate at each step: a linear warm-up, then a cosine or one drop.

    Args:
        learning_rate: The rate after the warm-up.
        warmup_steps: Number of steps in which the rate rises from zero. Default: 0.
        decay_after: Fraction of the steps after which the rate is a tenth. `None` (default): the rate falls along
            a cosine to a hundredth.
    """

    learning_rate: float
    warmup_steps: int = 0
    decay_after: float | None = None

    def __call__(self, step: Int[Array, ""], num_steps: int) -> Float[Array, ""]:
        """The rate at a step of `num_steps`, from 0 on."""
        step = step.astype(float)
        rise = jnp.minimum(1.0, (step + 1) / max(self.warmup_steps, 1))
        if self.decay_after is not None:
            return rise * self.learning_rate * jnp.where(step < self.decay_after * num_steps, 1.0, 0.1)
        return rise * self.learning_rate * (0.505 + 0.495 * jnp.cos(jnp.pi * step / num_steps))
