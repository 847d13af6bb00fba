"""The regression problem: noisy linear regression, with σ fixed or drawn per sequence."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel.precision import in_64_bits
from lintra.problem.noise import AbstractNoisePrior, parse_noise


class NoisyRegression(eqx.Module):
    """The regression model of §2.2: `w ~ N(0, I)`, `x ~ N(0, Λ)`, `y = ⟨w, x⟩ + σξ`, σ from a prior.

    Arguments:
        dim: Number of inputs, d. Default: 10.
        num_examples: Number of examples in a context, n. Default: 20.
        noise: Prior of the noise standard deviation σ, as text or as a value. Default: `uniform(0,5)`.
        covariance: Λ as a matrix, or a vector that is its diagonal. `None` (default): the identity.

    >>> NoisyRegression(dim=5, num_examples=50, noise="choice(1,3)")
    NoisyRegression(dim=5, num_examples=50, noise='choice(1,3)')
    """

    dim: int = eqx.field(static=True)
    num_examples: int = eqx.field(static=True)
    noise: AbstractNoisePrior
    covariance: Float[Array, "d d"] | None

    def __init__(
        self,
        dim: int = 10,
        num_examples: int = 20,
        noise: str | AbstractNoisePrior = "uniform(0,5)",
        covariance: ArrayLike | None = None,
    ):
        self.dim = arguments.whole_number("dim", dim)
        self.num_examples = arguments.whole_number("num_examples", num_examples)
        self.noise = parse_noise(noise)
        with in_64_bits():
            self.covariance = None if covariance is None else _covariance(covariance, self.dim)

    @property
    def is_isotropic(self) -> bool:
        """Whether Λ is the identity by construction."""
        return self.covariance is None

    def covariance_root(self) -> Float[Array, "d d"]:
        """A matrix R with `R Rᵀ = Λ`, so that `x = R g` for standard normal g."""
        if self.covariance is None:
            return jnp.eye(self.dim)
        with in_64_bits():
            values, vectors = jnp.linalg.eigh(self.covariance)
            return vectors * jnp.sqrt(jnp.maximum(values, 0))

    def __repr__(self) -> str:
        tail = "" if self.covariance is None else ", covariance=…"
        return f"NoisyRegression(dim={self.dim}, num_examples={self.num_examples}, noise='{self.noise}'{tail})"


def _covariance(value: ArrayLike, dim: int) -> Float[Array, "d d"]:
    array = arguments.real_array("covariance", value)
    if array.shape == (dim,):
        array = jnp.diag(array)
    if array.shape != (dim, dim):
        raise ValueError(f"`covariance` must have shape ({dim},) or ({dim}, {dim}), got {array.shape}.")
    tolerance = 10 * float(jnp.finfo(array.dtype).eps) * float(jnp.abs(array).max())
    if float(jnp.abs(array - array.T).max()) > tolerance:
        raise ValueError("`covariance` must be symmetric: the given matrix differs from its transpose.")
    lowest = float(jnp.linalg.eigvalsh(array)[0])
    if lowest < -dim * tolerance:
        raise ValueError(f"`covariance` must have no negative eigenvalue, got {lowest:.3g}.")
    return (array.astype(float) + array.T.astype(float)) / 2
