"""State of a descent: one value or one array per start, so that a run can be stored and resumed."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from lintra.models.base import AbstractModel


class DescentState(eqx.Module):
    """Where a descent from several starts has come to. Arrays have a leading axis of starts.

    Attributes:
        step: Number of steps taken, accepted or not, shape ().
        stopped: Whether no start can move any more, shape ().
        models: The models, stacked.
        opt_state: State of the optimiser.
        rate: Factor of the learning rate, halved by each rejected step; it recovers with accepted ones.
        mean_grad_norm: Moving average of the gradient's norm, infinite before the first step.
        num_rejected: Number of rejected steps.
        num_rollbacks: Number of returns to the best model.
        loss: Mean training loss since the last validation.
        best: The models with the smallest validation loss so far.
        best_loss: Their validation losses.
    """

    step: Int[Array, ""]
    stopped: Bool[Array, ""]
    models: AbstractModel
    opt_state: Any
    rate: Float[Array, " starts"]
    mean_grad_norm: Float[Array, " starts"]
    num_rejected: Int[Array, " starts"]
    num_rollbacks: Int[Array, " starts"]
    loss: Float[Array, " starts"]
    best: AbstractModel
    best_loss: Float[Array, " starts"]

    @classmethod
    def from_models(cls, models: AbstractModel, opt_state: Any) -> "DescentState":
        """The state before the first step."""
        num_starts = jax.tree.leaves(models)[0].shape[0]
        unknown = jnp.full(num_starts, jnp.inf)
        return cls(
            step=jnp.zeros((), int),
            stopped=jnp.zeros((), bool),
            models=models,
            opt_state=opt_state,
            rate=jnp.ones(num_starts),
            mean_grad_norm=unknown,
            num_rejected=jnp.zeros(num_starts, int),
            num_rollbacks=jnp.zeros(num_starts, int),
            loss=unknown,
            best=models,
            best_loss=unknown,
        )

    @property
    def rate_factor(self) -> Float[Array, " starts"]:
        """Factor of the learning rate: halved for a while by rejected steps, and for good by each rollback."""
        return self.rate * 0.5 ** self.num_rollbacks.astype(float)


def where_starts(condition: Bool[Array, " starts"], yes: PyTree[Array], no: PyTree[Array]) -> PyTree[Array]:
    """`yes` for the starts where the condition holds, `no` for the others; values that all share are `yes`'s."""
    return jax.tree.map(lambda a, b: jnp.where(expand_to(condition, a), a, b) if a.ndim else a, yes, no)


def expand_to(per_start: Array, like: Array) -> Array:
    """Append axes of length one, so that one value per start multiplies an array of starts."""
    expanded = per_start.reshape(per_start.shape + (1,) * (like.ndim - per_start.ndim))
    return expanded.astype(like.dtype) if jnp.issubdtype(per_start.dtype, jnp.floating) else expanded
