"""Mean by importance sampling that leaves out the rarest of the worst sequences."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

NUM_WORST = 256
"""Number of sequences that are kept one by one."""


class TailMean(eqx.Module):
    """The mean `m = (1/N) Σ ρᵢ ℓᵢ` over N sequences, without the rarest of the worst ones.

    Here ℓᵢ is the loss of a sequence and ρᵢ its importance, the ratio of the problem's density to the density from
    which it was drawn. With the losses in descending order, a sequence is left out while the total probability
    `(1/N) Σ ρ` of the sequences up to it is at most `ignored_probability`.

    Attributes:
        count: Number of sequences, N.
        total: Sum of ρ ℓ over the sequences that are not among the worst.
        worst: The largest losses in descending order; -1 where there are fewer sequences.
        importance: Their ρ.
    """

    count: Int[Array, "*shape"]
    total: Float[Array, "*shape"]
    worst: Float[Array, "*shape k"]
    importance: Float[Array, "*shape k"]

    @classmethod
    def empty(cls, shape: tuple[int, ...] = ()) -> "TailMean":
        """Means over no sequences; `shape` is that of an array of means."""
        worst = jnp.zeros((*shape, NUM_WORST))
        return cls(jnp.zeros(shape, int), jnp.zeros(shape), worst - 1.0, worst)

    def update(self, losses: Float[Array, " b"], importance: Float[Array, " b"]) -> "TailMean":
        """Take in a block of sequences. Use `jax.vmap` for an array of means."""
        losses, importance = (
            jnp.concatenate([self.worst, losses]),
            jnp.concatenate([self.importance, importance]),
        )
        order = jnp.argsort(losses, descending=True)
        losses, importance = losses[order], importance[order]
        num_worst = self.worst.shape[-1]
        rest = jnp.sum(jnp.maximum(losses[num_worst:], 0) * importance[num_worst:])
        count = self.count + (order.size - num_worst)
        return TailMean(count, self.total + rest, losses[:num_worst], importance[:num_worst])

    def mean(self, ignored_probability: float) -> Float[np.ndarray, "*shape"]:
        """The means."""
        count = np.maximum(np.asarray(self.count), 1)
        worst, importance = np.asarray(self.worst), np.asarray(self.importance)
        counts = np.cumsum(importance, axis=-1) / count[..., None] > ignored_probability
        with np.errstate(invalid="ignore"):  # 0 · ∞ is not counted
            tail = np.sum(importance * worst, axis=-1, where=counts)
        return (np.asarray(self.total) + tail) / count
