"""The loss ½ΔᵀΛΔ of weights, exact in the query."""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra import arguments

Loss = TypeVar("Loss")


def half_square(
    difference: Float[Array, "*batch d"], covariance: Float[Array, "d d"] | None = None
) -> Float[Array, "*batch"]:
    """`½ ΔᵀΛΔ` for differences Δ of weights. `None` (default) for Λ: the identity.

    >>> half_square(jnp.asarray([3.0, 4.0]))
    Array(12.5, dtype=float64)
    """
    if covariance is None:
        return 0.5 * jnp.sum(difference**2, axis=-1)
    return 0.5 * jnp.einsum("...i,ij,...j->...", difference, covariance, difference)


def overflow_to_inf(losses: Loss) -> Loss:
    """Replace NaN by infinity in an array or a tree of arrays: a loss is NaN only where it overflowed.

    >>> overflow_to_inf(jnp.asarray([1.0, jnp.nan]))
    Array([ 1., inf], dtype=float64)
    """
    return jax.tree.map(lambda values: jnp.where(jnp.isnan(values), jnp.inf, values), losses)


def metric_loss(
    weights: Float[Array, "b d"],
    target: Float[Array, "b d"],
    sqrt_metric: Float[Array, "b k d"] | None,
    *,
    clip_norm: float | None = None,
) -> Float[Array, ""]:
    """Mean over sequences of `½ ‖R (w − target)‖²`, whose gradient in w is clipped per sequence.

    Args:
        weights: Weights w of every sequence.
        target: The weights that they should be.
        sqrt_metric: R, shape (batch, k, d). One row is a sampled query, Eqs. (6) and (7); the rows of Λ's root
            give the average over all queries. `None`: the identity.
        clip_norm: Largest norm of a sequence's gradient in w. `None` (default): no limit.

    Returns:
        The mean loss. Only its gradient is clipped, not its value.
    """
    difference = jax.lax.stop_gradient(weights - target)
    if sqrt_metric is None:
        loss, gradient = half_square(difference), difference
    else:
        errors = jnp.einsum("bkd,bd->bk", sqrt_metric, difference)
        loss, gradient = half_square(errors), jnp.einsum("bkd,bk->bd", sqrt_metric, errors)
    if clip_norm is not None:
        length = jnp.sqrt(jnp.sum(gradient**2, axis=-1, keepdims=True))
        tiny = jnp.finfo(length.dtype).tiny
        gradient = gradient * jnp.minimum(
            1, arguments.positive("clip_norm", clip_norm) / jnp.maximum(length, tiny)
        )
    pull = jnp.sum(gradient * weights, axis=-1)  # ∂pull/∂w = gradient; its value is subtracted again
    return jnp.mean(loss + pull - jax.lax.stop_gradient(pull))
