"""The Bayes predictor for unknown σ: the floor of every predictor that sees only the context."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lintra.noise import AbstractDiscrete, AbstractNoise, Uniform, parse_noise
from lintra.predictor import AbstractContextwise, over_contexts
from lintra.spectrum import Spectrum
from lintra.statistics import GramStatistics


class Bayes(AbstractContextwise):
    """The posterior mean of w when σ is unknown: `w_B = ∫ p(σ | data) w_σ dσ`.

    Priors with atoms are summed exactly. For a uniform prior the nodes follow the posterior: a coarse
    grid in log σ shrinks onto where the posterior lies, and Gauss–Legendre nodes are put there. It is
    defined for every n and every noise level; σ = 0 stands for a noise just above rounding error.

    Arguments:
        noise: The prior of σ, as text or as a value.

    >>> stats = GramStatistics.from_data([[1.0], [1.0]], [1.0, 1.2])
    >>> Bayes("choice(1,3)").weights(stats).shape
    (1,)
    """

    noise: AbstractNoise

    def __init__(self, noise: str | AbstractNoise):
        self.noise = parse_noise(noise)

    def solve(self, stats: GramStatistics) -> Float[Array, " d"]:
        """The posterior mean of w for one context."""
        spectrum = Spectrum.of(stats)
        noise_var, weights = self._posterior(stats, spectrum)
        shrinkage = weights @ (1 / (spectrum.values + noise_var[:, None]))
        return spectrum.back(spectrum.labels * shrinkage)

    def posterior_mean_std(self, stats: GramStatistics) -> Float[Array, "*batch"]:
        """The posterior mean of σ for every context."""
        return over_contexts(type(self)._mean_std, self, stats)

    def _mean_std(self, stats: GramStatistics) -> Float[Array, ""]:
        noise_var, weights = self._posterior(stats, Spectrum.of(stats))
        return weights @ jnp.sqrt(noise_var)

    def _posterior(
        self, stats: GramStatistics, spectrum: Spectrum
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """Nodes in σ² and their posterior probabilities."""
        lowest = noise_floor(stats)
        if isinstance(self.noise, AbstractDiscrete):
            std, prior = self.noise.atoms()
            noise_var = jnp.maximum(std.astype(lowest.dtype) ** 2, lowest)
            return noise_var, jax.nn.softmax(
                log_likelihood(stats, spectrum, noise_var) + jnp.log(prior.astype(lowest.dtype))
            )
        if isinstance(self.noise, Uniform):
            low = jnp.log(jnp.maximum(self.noise.low, jnp.sqrt(lowest)))
            high = jnp.log(jnp.maximum(self.noise.high, jnp.sqrt(lowest)))

            def log_posterior(log_std: Float[Array, " k"]) -> Float[Array, " k"]:
                return log_likelihood(stats, spectrum, jnp.exp(2 * log_std)) + log_std  # dσ = σ d log σ

            log_std, weights = adaptive_quadrature(log_posterior, low, high)
            return jnp.exp(2 * log_std), weights
        raise TypeError(f"The Bayes predictor has no rule for the noise prior {self.noise}.")


def noise_floor(stats: GramStatistics) -> Float[Array, ""]:
    """The noise variance that rounding alone would leave, which stands for σ² = 0."""
    info = jnp.finfo(stats.gram.dtype)
    return jnp.maximum(info.eps * stats.yy / stats.count, info.tiny)


def log_likelihood(stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, " k"]) -> Float[Array, " k"]:
    """`log p(y | X, σ²)` up to a constant, with w integrated out: `y ~ N(0, X Xᵀ + σ²)`.

    Of the n eigenvalues of `X Xᵀ` those of Σ that are not zero count, and the rest are zero.
    """
    seen = spectrum.values > 0
    total = spectrum.values + noise_var[:, None]
    log_det = jnp.sum(jnp.where(seen, jnp.log(total), 0), axis=-1)
    explained = jnp.sum(spectrum.labels**2 / (jnp.where(seen, spectrum.values, 1) * total), axis=-1)
    freedom = (stats.count - jnp.sum(seen)).astype(noise_var.dtype)
    unexplained = jnp.where(freedom > 0, spectrum.residual(stats.yy), 0)
    return -0.5 * (log_det + freedom * jnp.log(noise_var) + explained + unexplained / noise_var)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_GRID = 16  # points of the searching grid
_ROUNDS = 8  # each narrows the interval up to fivefold: enough for n of 10¹⁰
_NEGLIGIBLE = 30.0  # log-density below the largest at which the posterior is given up


def adaptive_quadrature(
    log_density: Callable[[Float[Array, " k"]], Float[Array, " k"]], low: Float[Array, ""], high: Float[Array, ""]
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Nodes and normalised weights for a density with one hump on [low, high], however narrow."""
    grid = jnp.linspace(0.0, 1.0, _GRID).astype(low.dtype)

    def narrow(_: Int[Array, ""], interval: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = interval
        points = low + (high - low) * grid
        values = log_density(points)
        kept = values > values.max() - _NEGLIGIBLE
        first, last = jnp.argmax(kept), _GRID - 1 - jnp.argmax(kept[::-1])
        return points[jnp.maximum(first - 1, 0)], points[jnp.minimum(last + 1, _GRID - 1)]

    low, high = jax.lax.fori_loop(0, _ROUNDS, narrow, (low, high))
    nodes = low + (high - low) * (jnp.asarray(_NODES, low.dtype) + 1) / 2
    return nodes, jax.nn.softmax(log_density(nodes) + jnp.log(jnp.asarray(_WEIGHTS, low.dtype)))
