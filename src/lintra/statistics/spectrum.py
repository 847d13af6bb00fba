"""One context in the eigenbasis of Σ, where every ridge regression is diagonal."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra.statistics.gram import GramStatistics


class Spectrum(eqx.Module):
    """One context in the eigenbasis of Σ, where every ridge regression is diagonal.

    Eigenvalues that are zero to rounding (n < d, collinear inputs) are set to zero and carry no label,
    so that a ridge penalty going to zero gives the solution of least norm.
    """

    values: Float[Array, " d"]
    vectors: Float[Array, "d d"]
    alpha: Float[Array, " d"]  # α in the eigenbasis

    @classmethod
    def from_statistics(cls, stats: GramStatistics) -> "Spectrum":
        """Decompose one context."""
        values, vectors = jnp.linalg.eigh(stats.xx)
        cutoff = stats.dim * jnp.finfo(values.dtype).eps * values[-1]
        nonzero = (values > cutoff) & (jnp.arange(stats.dim) >= stats.dim - stats.num_examples)
        return cls(jnp.where(nonzero, values, 0), vectors, jnp.where(nonzero, stats.xy @ vectors, 0))

    def ridge(self, penalty: Float[Array, "..."]) -> Float[Array, " d"]:
        """`(Σ + penalty)⁻¹ α`, by least norm where that inverse does not exist."""
        return self.to_inputs(self.shrink(penalty))

    def shrink(self, penalty: Float[Array, "..."]) -> Float[Array, " d"]:
        """The same in the eigenbasis."""
        penalty = penalty.astype(self.values.dtype)
        return self.alpha * _safe_inverse(self.values + penalty)

    def to_inputs(self, coordinates: Float[Array, " d"]) -> Float[Array, " d"]:
        """From the eigenbasis to the inputs' coordinates."""
        return self.vectors @ coordinates

    def residual(self, label_square: Float[Array, ""]) -> Float[Array, ""]:
        """Sum of squared residuals of least squares, from `λ = Σ y²`."""
        return jnp.maximum(label_square - jnp.sum(self.alpha**2 * _safe_inverse(self.values)), 0)


def _safe_inverse(values: Float[Array, " d"]) -> Float[Array, " d"]:
    return jnp.where(values == 0, 0, 1 / jnp.where(values == 0, 1, values))  # NaN stays NaN
