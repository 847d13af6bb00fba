"""TunedRR: the adaptive penalty with a ceiling and a multiplier that are tuned for the problem."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key
from scipy.optimize import minimize

from lintra.baselines.ridge import AbstractRidge, residual_variance
from lintra.objective import half_square
from lintra.problem import NoisyRegression
from lintra.spectrum import Spectrum
from lintra.statistics import GramStatistics, sample_statistics


class TunedRidge(AbstractRidge):
    """Ridge with `multiplier · min(RSS/(n − d), ceiling)`. For n ≤ d it is undefined, as AdaRR is."""

    multiplier: Float[Array, ""]
    ceiling: Float[Array, ""]

    def penalty(self, stats: GramStatistics, spectrum: Spectrum) -> Float[Array, ""]:
        """The adjusted estimate."""
        estimate = residual_variance(stats, spectrum.residual(stats.yy))
        return self.multiplier * jnp.minimum(estimate, self.ceiling)

    @classmethod
    def tuned(cls, problem: NoisyRegression, *, num_sequences: int = 100_000, key: Key[Array, ""]) -> "TunedRidge":
        """The best multiplier and ceiling on `num_sequences` sequences drawn from `key`.

        Without noise any constants are best; then they are one and zero.
        """
        if problem.context <= problem.dim:
            raise ValueError(
                f"`tuned-ridge` estimates σ from n − d degrees of freedom and needs context > dim, "
                f"got {problem.context} ≤ {problem.dim}."
            )
        mean_square = problem.noise.second_moment
        if mean_square == 0:
            return cls(jnp.ones(()), jnp.zeros(()))
        loss = _tuning_loss(problem, num_sequences, key)
        start = np.log([0.9, 1.5 * mean_square])
        best = minimize(
            lambda at: float(loss(at)), start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-10}
        )
        multiplier, ceiling = np.exp(best.x)
        return cls(jnp.asarray(multiplier), jnp.asarray(ceiling))


def _tuning_loss(
    problem: NoisyRegression, num_sequences: int, key: Key[Array, ""]
) -> Callable[[Float[ArrayLike, "2"]], Float[Array, ""]]:
    """Mean loss against the oracle as a function of the logarithms of multiplier and ceiling."""

    def prepare(problem: NoisyRegression, key: Key[Array, ""]) -> tuple[Spectrum, Array, Array]:
        stats, truth = sample_statistics(problem, key, (num_sequences,))
        spectra = jax.vmap(Spectrum.of)(stats)
        estimate = jax.vmap(lambda one, spectrum: residual_variance(one, spectrum.residual(one.yy)))(
            stats, spectra
        )
        return spectra, estimate, truth.noise_std**2

    def loss(at: Float[Array, "2"], spectra: Spectrum, estimate: Array, noise_var: Array) -> Float[Array, ""]:
        guess = jnp.exp(at[0]) * jnp.minimum(estimate, jnp.exp(at[1]))
        difference = jax.vmap(lambda one, guess, true: one.shrink(guess) - one.shrink(true))(
            spectra, guess, noise_var
        )
        if not problem.is_isotropic:  # lengths are the same in the eigenbasis, ΔᵀΛΔ is not
            difference = jax.vmap(Spectrum.back)(spectra, difference)
        return half_square(difference, problem.covariance).mean()

    prepared, compiled = jax.jit(prepare)(problem, key), jax.jit(loss)
    return lambda at: compiled(jnp.asarray(at), *prepared)
