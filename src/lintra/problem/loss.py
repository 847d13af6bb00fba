"""The loss ½ΔᵀΛΔ of weights, exact in the query."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra import arguments


def half_square(
    difference: Float[Array, "*batch d"], covariance: Float[Array, "d d"] | None = None
) -> Float[Array, "*batch"]:
    """`½ ΔᵀΛΔ` for differences Δ of weights; nothing for Λ means the identity.

    >>> half_square(jnp.asarray([3.0, 4.0]))
    Array(12.5, dtype=float64)
    """
    if covariance is None:
        return 0.5 * jnp.sum(difference**2, axis=-1)
    return 0.5 * jnp.einsum("...i,ij,...j->...", difference, covariance, difference)


def probed_distance(
    weights: Float[Array, "b d"],
    target: Float[Array, "b d"],
    probe: Float[Array, "b k d"] | None,
    *,
    clip: float | None = None,
) -> Float[Array, ""]:
    """Mean over sequences of `½ Σₖ ⟨probeₖ, w − target⟩²`, with the slope in w clipped as everywhere.

    One probe is a sampled query, Eqs. (6) and (7); the rows of Λ's root are the average over all queries;
    nothing stands for the identity.
    """
    difference = jax.lax.stop_gradient(weights - target)
    if probe is None:
        loss, slope = half_square(difference), difference
    else:
        errors = jnp.einsum("bkd,bd->bk", probe, difference)
        loss, slope = half_square(errors), jnp.einsum("bkd,bk->bd", probe, errors)
    if clip is not None:
        length = jnp.sqrt(jnp.sum(slope**2, axis=-1, keepdims=True))
        tiny = jnp.finfo(length.dtype).tiny
        slope = slope * jnp.minimum(1, arguments.positive("clip", clip) / jnp.maximum(length, tiny))
    pull = jnp.sum(slope * weights, axis=-1)  # its slope in w is `slope`, and its value is taken out again
    return jnp.mean(loss + pull - jax.lax.stop_gradient(pull))
