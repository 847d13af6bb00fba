"""TunedRR: the adaptive penalty with a ceiling and a multiplier that are tuned for the problem."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import arguments
from lintra.baselines.ridge import AbstractRidge, require_freedom, residual_variance
from lintra.kernel.precision import in_64_bits
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import memory
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics
from lintra.statistics.spectrum import Spectrum


class TunedRidge(AbstractRidge):
    """Ridge with `multiplier · min(RSS/(n − d), ceiling)`. For n ≤ d it is undefined, as AdaRR is."""

    multiplier: Float[Array, ""]
    ceiling: Float[Array, ""]

    def penalty(self, stats: GramStatistics, spectrum: Spectrum) -> Float[Array, ""]:
        """The adjusted estimate."""
        estimate = residual_variance(stats, spectrum)
        return adjust(estimate, self.multiplier.astype(estimate.dtype), self.ceiling.astype(estimate.dtype))

    @classmethod
    def tuned(cls, problem: NoisyRegression, *, num_sequences: int = 100_000, key: Key[Array, ""]) -> "TunedRidge":
        """The best multiplier and ceiling on at least `num_sequences` sequences drawn from `key`.

        Without noise any constants are best; then they are one and zero. Where the ceiling is hardly ever
        reached, or always, one of the two is free, and is whatever the search ended on.
        """
        from scipy.optimize import minimize  # takes a third of a second, and is needed here alone

        require_freedom("tuned-ridge", problem)
        num_blocks = -(-arguments.whole_number("num_sequences", num_sequences) // _BLOCK)
        with in_64_bits():
            mean_square = problem.noise.second_moment
            if mean_square == 0:
                return cls(jnp.ones(()), jnp.zeros(()))
            memory.require_sampling(problem.dim, problem.num_examples, _BLOCK)
            sequences = _prepare(problem, key, num_blocks)
            best = minimize(
                lambda at: float(_loss(jnp.exp(jnp.asarray(at)), *sequences, problem.covariance)),
                x0=np.log([1.0, 1.5 * mean_square]),
                method="Nelder-Mead",
                options={"xatol": 1e-4, "fatol": 1e-10},
            )
            multiplier, ceiling = np.exp(best.x)
            return cls(jnp.asarray(multiplier), jnp.asarray(ceiling))


def adjust(
    estimate: Float[Array, "*batch"], multiplier: Float[Array, ""], ceiling: Float[Array, ""]
) -> Float[Array, "*batch"]:
    """The estimate of σ², cut at the ceiling and multiplied."""
    return multiplier * jnp.minimum(estimate, ceiling)


_BLOCK = 4096  # sequences decomposed at a time


@partial(jax.jit, static_argnames="num_blocks")
def _prepare(
    problem: NoisyRegression, key: Key[Array, ""], num_blocks: int
) -> tuple[Spectrum, Float[Array, " b"], Float[Array, " b"]]:
    """Sequences to tune on: their spectra, the estimate of σ² and the true σ²."""

    def block(key: Key[Array, ""]) -> tuple[Spectrum, Float[Array, " b"], Float[Array, " b"]]:
        stats, truth = sample_statistics(problem, (_BLOCK,), key=key)
        spectra = jax.vmap(Spectrum.from_statistics)(stats)
        estimate = jax.vmap(residual_variance)(stats, spectra)
        if problem.is_isotropic:  # lengths are the same in the eigenbasis
            spectra = eqx.tree_at(lambda spectrum: spectrum.vectors, spectra, jnp.zeros((_BLOCK, 0, 0)))
        return spectra, estimate, truth.noise_std**2

    blocks = jax.lax.map(block, jax.random.split(key, num_blocks))
    return jax.tree.map(lambda leaf: leaf.reshape(num_blocks * _BLOCK, *leaf.shape[2:]), blocks)


@jax.jit
def _loss(
    constants: Float[Array, "2"],
    spectra: Spectrum,
    estimate: Float[Array, " b"],
    noise_var: Float[Array, " b"],
    covariance: Float[Array, "d d"] | None,
) -> Float[Array, ""]:
    """Mean loss against the oracle."""
    shrink = jax.vmap(Spectrum.shrink)
    difference = shrink(spectra, adjust(estimate, *constants)) - shrink(spectra, noise_var)
    if covariance is not None:
        difference = jax.vmap(Spectrum.to_inputs)(spectra, difference)
    return half_square(difference, covariance).mean()
