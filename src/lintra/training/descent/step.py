"""One step of gradient descent from several starts, with a guard against gradients that are too long."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

from lintra.models.base import AbstractModel
from lintra.training.batch import Batch, loss
from lintra.training.descent.soap import scale_by_soap
from lintra.training.descent.state import DescentState, expand_to, where_starts

OPTIMISERS: dict[str, Any] = {"adam": optax.scale_by_adam(), "soap": scale_by_soap()}
"""Optimisers by name, without a learning rate."""

_RECOVERY = 2 ** (1 / 20)  # a halved rate recovers in 20 accepted steps
_MEMORY = 0.99  # of the moving average of the gradient's norm


@dataclass(frozen=True)
class GradientGuard:
    """Shortens long gradients, and rejects steps that are not finite.

    A deep model is a polynomial of high degree in its data, so overflow and very long gradients occur in ordinary
    training. Long gradients are shortened, not rejected: their direction leads away from where models diverge.

    Args:
        clip_norm: Largest norm of a sequence's gradient with respect to the weights. `None`: not clipped.
            Default: 10.
        max_norm: Largest norm of the gradient of a step. Default: infinity.
        max_ratio: Largest norm of the gradient of a step, as a multiple of its moving average. Default: 10.
    """

    clip_norm: float | None = 10.0
    max_norm: float = math.inf
    max_ratio: float = 10.0

    def apply(
        self, losses: Float[Array, " starts"], gradients: AbstractModel, mean_norm: Float[Array, " starts"]
    ) -> tuple[AbstractModel, Bool[Array, " starts"], Float[Array, " starts"]]:
        """Shorten gradients.

        Args:
            losses: Losses of the step.
            gradients: Their gradients with respect to the parameters.
            mean_norm: Moving average of the norms, infinite before the first step.

        Returns:
            The gradients, zero where the step is rejected; where it is accepted; and the new moving average.
        """
        norm = _global_norm(gradients)
        accepted = jnp.isfinite(losses) & jnp.isfinite(norm)
        kept_norm = jnp.minimum(norm, jnp.minimum(self.max_norm, self.max_ratio * mean_norm))
        gradients = jax.tree.map(
            lambda leaf: expand_to(kept_norm / jnp.maximum(norm, 1e-300), leaf) * leaf, gradients
        )
        gradients = where_starts(accepted, gradients, jax.tree.map(jnp.zeros_like, gradients))
        updated = jnp.where(jnp.isinf(mean_norm), kept_norm, _MEMORY * mean_norm + (1 - _MEMORY) * kept_norm)
        return gradients, accepted, jnp.where(accepted, updated, mean_norm)


def descent_step(
    state: DescentState,
    batch: Batch,
    learning_rate: Float[Array, ""],
    *,
    optimiser: str,
    guard: GradientGuard,
    printed_scale: bool,
) -> tuple[DescentState, Float[Array, " starts"]]:
    """Take one step from each start, on the same batch.

    Args:
        state: The state before the step.
        batch: The sequences.
        learning_rate: The schedule's rate; each start multiplies it by its own factor.
        optimiser: A name of `OPTIMISERS`.
        guard: Which gradients are shortened or rejected.
        printed_scale: Whether the rate is that of P and Q as printed.

    Returns:
        The state after the step, and the losses before it.
    """
    value_and_grad = jax.vmap(jax.value_and_grad(partial(loss, clip_norm=guard.clip_norm)), in_axes=(0, None))
    losses, gradients = value_and_grad(state.models, batch)
    gradients, accepted, mean_grad_norm = guard.apply(losses, gradients, state.mean_grad_norm)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes precisions
        moves, opt_state = OPTIMISERS[optimiser].update(gradients, state.opt_state)
    if printed_scale:
        moves = moves.from_printed()
    rate = learning_rate * state.rate_factor
    moved = jax.tree.map(lambda at, move: at - expand_to(rate, at) * move, state.models, moves)
    state = replace(
        state,
        step=state.step + 1,
        models=where_starts(accepted, moved, state.models),
        opt_state=where_starts(accepted, opt_state, state.opt_state),
        mean_grad_norm=mean_grad_norm,
        rate=jnp.where(accepted, jnp.minimum(1, state.rate * _RECOVERY), state.rate / 2),
        num_rejected=state.num_rejected + (~accepted).astype(int),
    )
    return state, losses


def _global_norm(gradients: PyTree[Array]) -> Float[Array, " starts"]:
    """Norm over all parameters of each start, in 64 bits."""
    squares = [
        jnp.sum(leaf.astype(float) ** 2, axis=tuple(range(1, leaf.ndim))) for leaf in jax.tree.leaves(gradients)
    ]
    return jnp.sqrt(jnp.sum(jnp.stack(squares), axis=0))
