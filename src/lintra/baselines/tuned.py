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
                lambda at: float(_loss(jnp.exp(jnp.asarray(at)), sequences)),
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


class _Sequences(eqx.Module):
    """Sequences to tune on, each in the eigenbasis of its Σ.

    A penalty p misses the oracle by `(σ² − p) α / (s + σ²) / (s + p)` along an eigenvector of eigenvalue s, so
    that all but `(σ² − p)² / (s + p)²` of the loss is computed once.
    """

    values: Float[Array, "b d"]  # s, and one where it is zero, since α is zero there
    metric: Float[Array, "b d"] | Float[Array, "b d d"]  # ½ Λ with rows and columns times α / (s + σ²)
    estimate: Float[Array, " b"]  # of σ²
    noise_var: Float[Array, " b"]  # the true σ²


@partial(jax.jit, static_argnames="num_blocks")
def _prepare(problem: NoisyRegression, key: Key[Array, ""], num_blocks: int) -> _Sequences:
    """Sequences to tune on."""

    def block(key: Key[Array, ""]) -> _Sequences:
        stats, truth = sample_statistics(problem, (_BLOCK,), key=key)
        spectra = jax.vmap(Spectrum.from_statistics)(stats)
        estimate = jax.vmap(residual_variance)(stats, spectra)
        noise_var = truth.noise_std**2
        oracle = jax.vmap(Spectrum.shrink)(spectra, noise_var)
        if problem.is_isotropic:  # lengths are the same in the eigenbasis
            metric = 0.5 * oracle**2
        else:
            across = spectra.vectors * oracle[:, None, :]
            metric = 0.5 * jnp.einsum("bki,kl,blj->bij", across, problem.covariance, across)
        return _Sequences(jnp.where(spectra.values == 0, 1, spectra.values), metric, estimate, noise_var)

    blocks = jax.lax.map(block, jax.random.split(key, num_blocks))
    return jax.tree.map(lambda leaf: leaf.reshape(num_blocks * _BLOCK, *leaf.shape[2:]), blocks)


@jax.jit
def _loss(constants: Float[Array, "2"], sequences: _Sequences) -> Float[Array, ""]:
    """Mean loss against the oracle."""
    penalty = adjust(sequences.estimate, *constants)
    inverse = 1 / (sequences.values + penalty[:, None])
    if sequences.metric.ndim == inverse.ndim:
        square = jnp.sum(sequences.metric * inverse**2, axis=-1)
    else:
        square = jnp.einsum("bi,bij,bj->b", inverse, sequences.metric, inverse)
    return jnp.mean((sequences.noise_var - penalty) ** 2 * square)
