"""The Bayes predictor for unknown σ: the floor of every predictor that sees only the context."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

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
        shrinkage = jnp.sum(weights / (spectrum.values[:, None] + noise_var), axis=-1)
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
    return jnp.maximum(info.eps * stats.yy / stats.count.astype(stats.yy.dtype), info.tiny)


def log_likelihood(stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, " k"]) -> Float[Array, " k"]:
    """`log p(y | X, σ²)` up to a constant, with w integrated out: `y ~ N(0, X Xᵀ + σ²)`.

    Of the n eigenvalues of `X Xᵀ` those of Σ that are not zero count, and the rest are zero.
    """
    seen = spectrum.values > 0
    total = jnp.where(seen, spectrum.values + noise_var[:, None], 1)
    energy = jnp.where(seen, spectrum.labels**2 / jnp.where(seen, spectrum.values, 1), 0)
    seen_part = jnp.sum(jnp.log(total) + energy / total, axis=-1)  # one sum, so that XLA makes one loop of it
    freedom = (stats.count - jnp.sum(seen)).astype(noise_var.dtype)
    unexplained = jnp.where(freedom > 0, spectrum.residual(stats.yy), 0)
    return -0.5 * (seen_part + freedom * jnp.log(noise_var) + unexplained / noise_var)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_GRID = 16  # points of the searching grid
_FILLED = 6  # points of it on which the posterior must lie; 64 nodes are far more than enough for the rest
_ROUNDS = 8  # each narrows the interval up to fivefold: enough for n of 10¹⁰
_NEGLIGIBLE = 30.0  # log-density below the largest at which the posterior is given up


def adaptive_quadrature(
    log_density: Callable[[Float[Array, " k"]], Float[Array, " k"]], low: Float[Array, ""], high: Float[Array, ""]
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Nodes and normalised weights for a density with one hump on [low, high], however narrow."""
    grid = jnp.linspace(0.0, 1.0, _GRID).astype(low.dtype)

    def narrow(search: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high, rounds, _ = search
        points = low + (high - low) * grid
        values = log_density(points)
        kept = values > values.max() - _NEGLIGIBLE
        first, last = jnp.argmax(kept), _GRID - 1 - jnp.argmax(kept[::-1])
        found = (kept.sum() >= _FILLED) | (rounds + 1 >= _ROUNDS)
        return points[jnp.maximum(first - 1, 0)], points[jnp.minimum(last + 1, _GRID - 1)], rounds + 1, found

    search = low, high, jnp.asarray(0), jnp.asarray(False)
    low, high, _, _ = jax.lax.while_loop(lambda search: ~search[-1], narrow, search)
    nodes = low + (high - low) * (jnp.asarray(_NODES, low.dtype) + 1) / 2
    return nodes, jax.nn.softmax(log_density(nodes) + jnp.log(jnp.asarray(_WEIGHTS, low.dtype)))
