"""Statistics and examples of random sequences, and the truth behind them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

from lintra.arguments import KeyLike, random_key
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.chi import chi_from_normal
from lintra.statistics.gram import GramStatistics, gram_from_factor


class Truth(eqx.Module):
    """What a sequence hides: the weights that made its labels, and its noise level."""

    weights: Float[Array, "*batch d"]
    noise_std: Float[Array, "*batch"]


def sample_truth(
    problem: NoisyRegression, shape: tuple[int, ...] = (), dtype: DTypeLike = float, *, key: KeyLike = 0
) -> Truth:
    """Draw weights and noise standard deviations.

    Args:
        problem: The regression problem.
        shape: Shape of the batch of sequences. Default: one sequence.
        dtype: Precision. Default: float64, or float32 where JAX is not in 64-bit mode.
        key: Randomness, a number or a key. Default: 0.

    Returns:
        What the sequences hide.
    """
    weights_key, noise_key = jax.random.split(random_key(key))
    weights = jax.random.normal(weights_key, (*shape, problem.dim), dtype)
    return Truth(weights=weights, noise_std=problem.noise.sample(noise_key, shape, dtype))


def sample_data(
    problem: NoisyRegression, shape: tuple[int, ...] = (), dtype: DTypeLike = float, *, key: KeyLike = 0
) -> tuple[Float[Array, "*batch n d"], Float[Array, "*batch n"], Truth]:
    """Draw the examples (x, y) of sequences.

    Args:
        problem: The regression problem.
        shape: Shape of the batch of sequences. Default: one sequence.
        dtype: Precision. Default: float64, or float32 where JAX is not in 64-bit mode.
        key: Randomness, a number or a key. Default: 0.

    Returns:
        Inputs, shape (..., n, d), labels, shape (..., n), and what the sequences hide.

    >>> x, y, truth = sample_data(NoisyRegression(), (3,))
    >>> x.shape, y.shape, truth.weights.shape
    ((3, 20, 10), (3, 20), (3, 10))
    """
    return _sample_data(problem, random_key(key), shape, dtype)


def sample_statistics(
    problem: NoisyRegression, shape: tuple[int, ...] = (), dtype: DTypeLike = float, *, key: KeyLike = 0
) -> tuple[GramStatistics, Truth]:
    """Draw the Gram statistics of sequences, at a cost that does not depend on n.

    For n ≥ d the Gram matrix is drawn by Bartlett's decomposition; for n < d the examples are drawn.

    Args:
        problem: The regression problem.
        shape: Shape of the batch of sequences. Default: one sequence.
        dtype: Precision. Default: float64, or float32 where JAX is not in 64-bit mode.
        key: Randomness, a number or a key. Default: 0.

    Returns:
        The statistics, and what the sequences hide.

    >>> stats, truth = sample_statistics(NoisyRegression(num_examples=1_000_000), (3,))
    >>> stats.gram.shape, truth.noise_std.shape
    ((3, 11, 11), (3,))
    """
    return _sample_statistics(problem, random_key(key), shape, dtype)


@partial(jax.jit, static_argnames=("shape", "dtype"))
def _sample_data(
    problem: NoisyRegression, key: Key[Array, ""], shape: tuple[int, ...], dtype: DTypeLike
) -> tuple[Float[Array, "*batch n d"], Float[Array, "*batch n"], Truth]:
    truth_key, x_key, y_key = jax.random.split(key, 3)
    truth = sample_truth(problem, shape, dtype, key=truth_key)
    x = jax.random.normal(x_key, (*shape, problem.num_examples, problem.dim), dtype)
    if not problem.is_isotropic:
        x = x @ problem.covariance_root().T.astype(dtype)
    noise = jax.random.normal(y_key, (*shape, problem.num_examples), dtype)
    y = jnp.einsum("...nd,...d->...n", x, truth.weights) + truth.noise_std[..., None] * noise
    return x, y, truth


@partial(jax.jit, static_argnames=("shape", "dtype"))
def _sample_statistics(
    problem: NoisyRegression, key: Key[Array, ""], shape: tuple[int, ...], dtype: DTypeLike
) -> tuple[GramStatistics, Truth]:
    if problem.num_examples < problem.dim:
        x, y, truth = sample_data(problem, shape, dtype, key=key)
        factor = jnp.swapaxes(jnp.concatenate([x, y[..., None]], axis=-1), -1, -2)
    else:
        truth_key, factor_key = jax.random.split(key)
        truth = sample_truth(problem, shape, dtype, key=truth_key)
        factor = _bartlett(problem, truth, factor_key)
    return gram_from_factor(factor, problem.num_examples), truth


def _bartlett(problem: NoisyRegression, truth: Truth, key: Key[Array, ""]) -> Float[Array, "*batch e e"]:
    """A square root of the Gram matrix: Bartlett's factor A of Σ, below it the labels in A's coordinates.

    With ξ the noise, `Xᵀξ ~ A z` and `‖ξ‖² ~ ‖z‖² + χ²(n−d)`, so the last row is `(Aᵀw + σz, σχ)`.
    """
    n, d, shape, dtype = problem.num_examples, problem.dim, truth.noise_std.shape, truth.weights.dtype
    below = d * (d - 1) // 2
    normals = jax.random.normal(key, (*shape, below + 2 * d + 1), dtype)
    noise, for_chi = normals[..., below : below + d], normals[..., below + d :]
    chi = chi_from_normal(for_chi, (*(n - i for i in range(d)), max(n - d, 1)))
    indices = np.zeros((d, d), dtype=int)
    indices[np.tril_indices(d, -1)] = np.arange(below)
    lower = normals[..., indices] * np.tri(d, k=-1).astype(dtype)
    root = lower + chi[..., :d, None] * jnp.eye(d, dtype=dtype)
    if not problem.is_isotropic:
        root = problem.covariance_root().astype(dtype) @ root
    noise_std = truth.noise_std[..., None]
    labels = jnp.einsum("...ij,...i->...j", root, truth.weights) + noise_std * noise
    rest = noise_std * chi[..., d:] * float(n > d)
    inputs = jnp.concatenate([root, jnp.zeros_like(root[..., :1])], axis=-1)
    return jnp.concatenate([inputs, jnp.concatenate([labels, rest], axis=-1)[..., None, :]], axis=-2)
