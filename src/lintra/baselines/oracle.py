"""The oracle, ridge regression with the true σ, and the σ that weights imply."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.predictor import over_contexts
from lintra.statistics.gram import GramStatistics
from lintra.statistics.spectrum import Spectrum

_CANDIDATES = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 601)])  # σ²


def oracle_weights(stats: GramStatistics, noise_std: ArrayLike) -> Float[Array, "*batch d"]:
    """Ridge regression with the true σ, `w_σ = (Σ + σ²)⁻¹ α`: the posterior mean of w, the oracle.

    At σ = 0 it is the solution of least norm, the limit of ridge regression as σ goes to zero.

    Arguments:
        stats: The contexts.
        noise_std: The true σ, one for all contexts or one for each.
    """
    noise_std = arguments.real_array("noise_std", noise_std)
    values = arguments.concrete(noise_std)
    if values is not None and (values < 0).any():
        raise ValueError(f"`noise_std` must not be negative, got {values.min()}.")
    if noise_std.ndim and noise_std.shape != stats.num_examples.shape:
        raise ValueError(
            f"`noise_std` must be one number or of shape {stats.num_examples.shape}, got {noise_std.shape}."
        )
    noise_std = jnp.broadcast_to(noise_std, stats.num_examples.shape).astype(stats.gram.dtype)
    return over_contexts(_oracle, None, stats, noise_std)


def _oracle(_: None, stats: GramStatistics, noise_std: Float[Array, ""]) -> Float[Array, " d"]:
    return Spectrum.from_statistics(stats).ridge(noise_std**2)


def implied_noise_std(
    weights: Float[Array, "b d"] | Float[np.ndarray, "b d"], stats: GramStatistics
) -> Float[np.ndarray, " b"]:
    """The σ whose ridge solution is nearest to the given weights, for every context.

    >>> import jax
    >>> from lintra.problem import NoisyRegression
    >>> from lintra.statistics import sample_statistics
    >>> stats, _ = sample_statistics(NoisyRegression(noise="fixed(2)"), (3,))
    >>> bool(np.allclose(implied_noise_std(oracle_weights(stats, jax.numpy.full(3, 1.5)), stats), 1.5, rtol=0.01))
    True
    """
    spectrum = jax.vmap(Spectrum.from_statistics)(stats)
    values, labels = np.asarray(spectrum.values), np.asarray(spectrum.alpha)
    turned = np.einsum("bij,bi->bj", np.asarray(spectrum.vectors), np.asarray(weights))
    distances = np.empty((len(turned), len(_CANDIDATES)))
    for index, noise_var in enumerate(_CANDIDATES):
        ridge = np.divide(labels, values + noise_var, out=np.zeros_like(labels), where=values + noise_var > 0)
        distances[:, index] = ((turned - ridge) ** 2).sum(axis=1)
    return np.sqrt(_CANDIDATES[distances.argmin(axis=1)])


def correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    """Over contexts of one noise level; `None` where one of them does not vary."""
    if one.std() == 0 or other.std() == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])
