"""The Bayes predictor for unknown σ: the floor of every predictor that sees only the context."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra.predictor import AbstractContextwise, over_contexts
from lintra.problem.noise import AbstractNoisePrior, parse_noise
from lintra.statistics.gram import GramStatistics
from lintra.statistics.spectrum import Spectrum


class AbstractBayes(AbstractContextwise):
    """The posterior mean of w when the noise level is unknown, for one likelihood of the noise level."""

    noise: eqx.AbstractVar[AbstractNoisePrior]

    @abc.abstractmethod
    def _lowest(self, stats: GramStatistics) -> Float[Array, ""]:
        """Return the noise variance that stands for zero."""

    @abc.abstractmethod
    def _log_likelihood(
        self, stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        """Return the log-likelihood of noise variances, up to a constant."""

    @abc.abstractmethod
    def _weight_var(
        self, stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return the prior variance of a weight, in the labels' unit."""

    def solve(self, stats: GramStatistics) -> Float[Array, " d"]:
        """The posterior mean of w for one context."""
        spectrum = Spectrum.from_statistics(stats)
        return _posterior_mean(spectrum, *self._posterior(stats, spectrum))

    def compare(
        self, stats: GramStatistics, weights: Float[Array, "*batch d"]
    ) -> tuple[Float[Array, "*batch d"], Float[Array, "*batch"]]:
        """Compare other weights with the posterior mean.

        Args:
            stats: Contexts.
            weights: Weights of each context, shape (..., d).

        Returns:
            The posterior mean w_B, shape (..., d), and the excess risk `Δᵀ V⁻¹ Δ / d` of the weights, shape (...),
            with Δ = w − w_B and V the posterior covariance of w. The expected squared error of the weights, in
            posterior standard deviations, is 1 + excess times that of w_B.
        """
        return over_contexts(type(self)._compare, self, stats, weights)

    def _compare(
        self, stats: GramStatistics, weights: Float[Array, " d"]
    ) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        spectrum = Spectrum.from_statistics(stats)
        noise_var, probability = self._posterior(stats, spectrum)
        best = _posterior_mean(spectrum, noise_var, probability)
        # At one noise variance v, in units of the prior variance τ² of a weight, V = τ² v (Σ + v)⁻¹.
        mean_var = probability @ noise_var
        difference = weights - best
        distance = difference @ stats.xx @ difference / mean_var + difference @ difference
        return best, distance / (self._weight_var(stats, spectrum, mean_var) * stats.dim)

    def _posterior(
        self, stats: GramStatistics, spectrum: Spectrum
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """Nodes in the noise variance and their posterior probabilities."""
        # Not a closure, so that the search for nodes can be kept out of derivatives.
        log_likelihood = jax.tree_util.Partial(type(self)._log_likelihood, self, stats, spectrum)
        # What stands for a variance of zero is not differentiated: it would overflow where all labels are zero.
        return self.noise.posterior(log_likelihood, jax.lax.stop_gradient(self._lowest(stats)))


class Bayes(AbstractBayes):
    """The posterior mean of w when σ is unknown: `w_B = ∫ p(σ | data) w_σ dσ`.

    The prior gives the nodes of the integral (`AbstractNoisePrior.posterior`): priors with atoms are summed
    exactly, and the nodes of a uniform prior follow the posterior. The predictor is defined for every n and every
    noise level; σ = 0 stands for a noise just above rounding error.

    Arguments:
        noise: The prior of σ, as text or as a value.

    >>> stats = GramStatistics.from_data([[1.0], [1.0]], [1.0, 1.2])
    >>> Bayes("choice(1,3)").weights(stats).shape
    (1,)
    """

    noise: AbstractNoisePrior

    def __init__(self, noise: str | AbstractNoisePrior):
        self.noise = parse_noise(noise)

    def posterior_mean_std(self, stats: GramStatistics) -> Float[Array, "*batch"]:
        """The posterior mean of σ for every context."""
        return over_contexts(type(self)._mean_std, self, stats)

    def _mean_std(self, stats: GramStatistics) -> Float[Array, ""]:
        noise_var, weights = self._posterior(stats, Spectrum.from_statistics(stats))
        return weights @ jnp.sqrt(noise_var)

    def _lowest(self, stats: GramStatistics) -> Float[Array, ""]:
        return min_noise_var(stats)

    def _log_likelihood(
        self, stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        return log_likelihood(stats, spectrum, noise_var)

    def _weight_var(
        self, stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, ""]
    ) -> Float[Array, ""]:
        return jnp.ones_like(noise_var)


class UnitBlindBayes(AbstractBayes):
    """The posterior mean of w when labels come in an unknown unit τ, with the prior p(τ) ∝ 1/τ.

    Weights are w ~ N(0, τ² I) and labels have noise of standard deviation rτ, with a prior on r = σ/τ. Then
    `w = ∫ p(r | data) (Σ + r²)⁻¹ α dr` with

        p(r | data) ∝ p(r) |Σ + r²|^(−1/2) r^(−(n−d)) Q(r)^(−n/2),   Q(r) = (λ − αᵀ(Σ + r²)⁻¹α) / r².

    Args:
        noise: The prior of r, as text or as a value.

    >>> stats = GramStatistics.from_data([[1.0], [1.0]], [1.0, 1.2])
    >>> in_metres = UnitBlindBayes("uniform(0,2)").weights(stats)
    >>> stats = GramStatistics.from_data([[1.0], [1.0]], [100.0, 120.0])
    >>> in_centimetres = UnitBlindBayes("uniform(0,2)").weights(stats)
    >>> bool(jnp.allclose(in_centimetres, 100 * in_metres, rtol=1e-12))
    True
    """

    noise: AbstractNoisePrior

    def __init__(self, noise: str | AbstractNoisePrior):
        self.noise = parse_noise(noise)

    def _lowest(self, stats: GramStatistics) -> Float[Array, ""]:
        # Labels have mean square τ² (tr Σ / n + r²), of which rounding alone leaves a share of eps.
        info = jnp.finfo(stats.gram.dtype)
        return jnp.maximum(info.eps * jnp.trace(stats.xx) / stats.num_examples.astype(stats.yy.dtype), info.tiny)

    def _log_likelihood(
        self, stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        total, energy, freedom, unexplained = _label_terms(stats, spectrum, noise_var)
        log_determinant = jnp.sum(jnp.log(total), axis=-1) + freedom * jnp.log(noise_var)
        quadratic = jnp.sum(energy / total, axis=-1) + unexplained / noise_var
        # τ integrated out: ∫ τ^(−n−1) exp(−Q / 2τ²) dτ ∝ Q^(−n/2). Labels that are all zero have Q = 0.
        quadratic = jnp.where(quadratic > 0, quadratic, 1)
        return -0.5 * (log_determinant + stats.num_examples.astype(noise_var.dtype) * jnp.log(quadratic))

    def _weight_var(
        self, stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, ""]
    ) -> Float[Array, ""]:
        # The most likely τ² at this r² is Q(r)/n.
        total, energy, _, unexplained = _label_terms(stats, spectrum, noise_var[None])
        quadratic = jnp.sum(energy / total) + unexplained / noise_var
        return quadratic / stats.num_examples.astype(noise_var.dtype)


def min_noise_var(stats: GramStatistics) -> Float[Array, ""]:
    """The noise variance that rounding alone would leave, which stands for σ² = 0."""
    info = jnp.finfo(stats.gram.dtype)
    return jnp.maximum(info.eps * stats.yy / stats.num_examples.astype(stats.yy.dtype), info.tiny)


def log_likelihood(stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, " k"]) -> Float[Array, " k"]:
    """`log p(y | X, σ²)` up to a constant, with w integrated out: `y ~ N(0, X Xᵀ + σ²)`."""
    total, energy, freedom, unexplained = _label_terms(stats, spectrum, noise_var)
    seen_part = jnp.sum(jnp.log(total) + energy / total, axis=-1)  # one sum, so that XLA makes one loop of it
    return -0.5 * (seen_part + freedom * jnp.log(noise_var) + unexplained / noise_var)


def _label_terms(
    stats: GramStatistics, spectrum: Spectrum, noise_var: Float[Array, " k"]
) -> tuple[Float[Array, "k d"], Float[Array, " d"], Float[Array, ""], Float[Array, ""]]:
    """Terms of `log |K|` and `yᵀ K⁻¹ y` for the covariance `K = X Xᵀ + σ²` of the labels.

    Of the n eigenvalues of `X Xᵀ` those of Σ that are not zero count, and the rest are zero.

    Returns:
        Eigenvalues `s + σ²` (1 where s = 0), the squares of the labels along them, the number of other
        eigenvalues σ², and the sum of squares of the labels along those.
    """
    seen = spectrum.values > 0
    total = jnp.where(seen, spectrum.values + noise_var[:, None], 1)
    energy = jnp.where(seen, spectrum.alpha**2 / jnp.where(seen, spectrum.values, 1), 0)
    freedom = (stats.num_examples - jnp.sum(seen)).astype(noise_var.dtype)
    return total, energy, freedom, jnp.where(freedom > 0, spectrum.residual(stats.yy), 0)


def _posterior_mean(
    spectrum: Spectrum, noise_var: Float[Array, " k"], probability: Float[Array, " k"]
) -> Float[Array, " d"]:
    """Return `Σ_k p_k (Σ + v_k)⁻¹ α`."""
    shrinkage = jnp.sum(probability / (spectrum.values[:, None] + noise_var), axis=-1)
    return spectrum.to_inputs(spectrum.alpha * shrinkage)
