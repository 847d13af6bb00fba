"""Losses, exact in the query: with `x_query ~ N(0, Λ)` the mean of `½ ⟨Δ, x⟩²` is `½ ΔᵀΛΔ`."""

import jax.numpy as jnp
from jaxtyping import Array, Float


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
