"""What a context says: the Gram matrix of its tokens, and nothing more."""

from collections.abc import Iterable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Float, Int, Key

from lintra import checks
from lintra.chi import chi_from_normal
from lintra.problem import NoisyRegression


class GramStatistics(eqx.Module):
    """Gram matrix `Σⱼ eⱼ eⱼᵀ` of the tokens `e = (x, y)`: all that a linear transformer can see.

    The matrix is `[[Σ, α], [αᵀ, λ]]` in the paper's letters, here `xx`, `xy` and `yy`.
    Leading axes, where there are any, run over contexts.

    >>> stats = GramStatistics.from_data([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0])
    >>> stats.xy
    Array([3., 8.], dtype=float64)
    """

    gram: Float[Array, "*batch e e"]
    count: Int[Array, "*batch"]

    def __check_init__(self):
        # Trees of axes, of flags and the like have the same structure, with leaves that are no arrays.
        if not (hasattr(self.gram, "shape") and hasattr(self.count, "shape")):
            return
        gram, count = self.gram.shape, self.count.shape
        if len(gram) < 2 or gram[-1] != gram[-2] or gram[-1] < 2:
            raise ValueError(f"`gram` must have shape (..., d+1, d+1) with d ≥ 1, got {gram}.")
        if count != gram[:-2]:
            raise ValueError(f"`count` must have the leading axes {gram[:-2]} of `gram`, got shape {count}.")

    @classmethod
    def from_data(cls, x: ArrayLike, y: ArrayLike) -> "GramStatistics":
        """Collect one context, `x` (n, d) and `y` (n,), or a batch of them with the same leading axes.

        Sums are in 64 bits, whatever the data is.
        """
        x, y = (checks.real_array(name, value).astype(float) for name, value in (("x", x), ("y", y)))
        if x.ndim < 2 or y.shape != x.shape[:-1]:
            raise ValueError(
                f"`x` and `y` must have shapes (..., n, d) and (..., n), got {x.shape} and {y.shape}."
            )
        if 0 in x.shape:
            raise ValueError(f"`x` must hold at least one example of one input, got shape {x.shape}.")
        factor = jnp.swapaxes(jnp.concatenate([x, y[..., None]], axis=-1), -1, -2)
        stats = _from_factor(factor, x.shape[-2])
        gram = checks.concrete(stats.gram)
        if gram is not None and not np.isfinite(gram).all():
            raise ValueError("The Gram matrix of `x` and `y` overflows; scale the data down.")
        return stats

    @classmethod
    def from_chunks(cls, chunks: Iterable[tuple[ArrayLike, ArrayLike]]) -> "GramStatistics":
        """Collect one context that comes in pieces `(x, y)`, of which only one is in memory at a time."""
        total = None
        for x, y in chunks:
            piece = cls.from_data(x, y)
            total = piece if total is None else total.merge(piece)
        if total is None:
            raise ValueError("`chunks` must hold at least one piece (x, y), got none.")
        return total

    @classmethod
    def from_gram(cls, gram: ArrayLike, count: ArrayLike) -> "GramStatistics":
        """Take Gram matrices of shape (..., d+1, d+1) that were computed elsewhere, and their counts n."""
        gram, counts = checks.real_array("gram", gram), checks.counts("count", count)
        if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2] or gram.shape[-1] < 2:
            raise ValueError(f"`gram` must have shape (..., d+1, d+1) with d ≥ 1, got {gram.shape}.")
        if 0 in gram.shape:
            raise ValueError(f"`gram` must hold at least one matrix, got shape {gram.shape}.")
        if counts.ndim and counts.shape != gram.shape[:-2]:
            raise ValueError(f"`count` must be one number or of shape {gram.shape[:-2]}, got {counts.shape}.")
        transpose, values = jnp.swapaxes(gram, -1, -2), checks.concrete(gram)
        if values is not None:
            tolerance = 1e-5 * np.abs(values).max()
            if (np.abs(values - np.swapaxes(values, -1, -2)) > tolerance).any():
                raise ValueError("`gram` must be symmetric: a given matrix differs from its transpose.")
            lowest = float(np.linalg.eigvalsh(values).min())
            if lowest < -tolerance:
                raise ValueError(f"`gram` must have no negative eigenvalue, got {lowest:.3g}.")
        return cls(gram=(gram + transpose) / 2, count=jnp.broadcast_to(counts, gram.shape[:-2]))

    def merge(self, other: "GramStatistics") -> "GramStatistics":
        """Statistics of both contexts read as one."""
        if self.dim != other.dim:
            raise ValueError(f"Contexts of {self.dim} and {other.dim} inputs cannot be merged.")
        if self.count.shape != other.count.shape:
            raise ValueError(f"Batches of shapes {self.count.shape} and {other.count.shape} cannot be merged.")
        return GramStatistics(gram=self.gram + other.gram, count=self.count + other.count)

    def in_unit(self, unit: float | Float[Array, "*batch"]) -> "GramStatistics":
        """The same contexts with labels divided by `unit`."""
        return GramStatistics(gram=relabelled(self.gram, unit), count=self.count)

    @property
    def label_rms(self) -> Float[Array, "*batch"]:
        """Root mean square of the labels, and 1 where all are zero."""
        mean = self.yy / self.count.astype(self.gram.dtype)
        return jnp.sqrt(jnp.where(mean > 0, mean, 1))

    @property
    def dim(self) -> int:
        """Number of inputs, d."""
        return self.gram.shape[-1] - 1

    @property
    def xx(self) -> Float[Array, "*batch d d"]:
        """Σ = Σⱼ xⱼ xⱼᵀ."""
        return self.gram[..., :-1, :-1]

    @property
    def xy(self) -> Float[Array, "*batch d"]:
        """α = Σⱼ yⱼ xⱼ."""
        return self.gram[..., :-1, -1]

    @property
    def yy(self) -> Float[Array, "*batch"]:
        """λ = Σⱼ yⱼ²."""
        return self.gram[..., -1, -1]


def relabelled(
    gram: Float[Array, "*batch e e"], unit: float | Float[Array, "*batch"]
) -> Float[Array, "*batch e e"]:
    """Gram matrices of the same tokens with labels divided by `unit`."""
    unit = jnp.broadcast_to(jnp.asarray(unit, gram.dtype), gram.shape[:-2])[..., None]
    scale = jnp.concatenate([jnp.ones_like(gram[..., 0, :-1]), 1 / unit], axis=-1)
    return gram * scale[..., :, None] * scale[..., None, :]


class Truth(eqx.Module):
    """What a sequence hides: the weights that made its labels, and its noise level."""

    weights: Float[Array, "*batch d"]
    noise_std: Float[Array, "*batch"]


def sample_truth(
    problem: NoisyRegression, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
) -> Truth:
    """Draw weights and noise levels for `shape` sequences."""
    weights_key, noise_key = jax.random.split(key)
    weights = jax.random.normal(weights_key, (*shape, problem.dim), dtype)
    return Truth(weights=weights, noise_std=problem.noise.sample(noise_key, shape, dtype))


@partial(jax.jit, static_argnames=("shape", "dtype"))
def sample_data(
    problem: NoisyRegression, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
) -> tuple[Float[Array, "*batch n d"], Float[Array, "*batch n"], Truth]:
    """Draw the examples `(x, y)` of `shape` sequences, and what they hide.

    >>> x, y, truth = sample_data(NoisyRegression(), jax.random.key(0), (3,))
    >>> x.shape, y.shape, truth.weights.shape
    ((3, 20, 10), (3, 20), (3, 10))
    """
    truth_key, x_key, y_key = jax.random.split(key, 3)
    truth = sample_truth(problem, truth_key, shape, dtype)
    x = jax.random.normal(x_key, (*shape, problem.context, problem.dim), dtype)
    if not problem.is_isotropic:
        x = x @ problem.covariance_root().T.astype(dtype)
    noise = jax.random.normal(y_key, (*shape, problem.context), dtype)
    y = jnp.einsum("...nd,...d->...n", x, truth.weights) + truth.noise_std[..., None] * noise
    return x, y, truth


@partial(jax.jit, static_argnames=("shape", "dtype"))
def sample_statistics(
    problem: NoisyRegression, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
) -> tuple[GramStatistics, Truth]:
    """Draw the statistics of `shape` sequences, and what they hide, at a cost that does not depend on n.

    For n ≥ d the Gram matrix is drawn by Bartlett's decomposition; for n < d the examples are drawn.

    >>> stats, truth = sample_statistics(NoisyRegression(context=1_000_000), jax.random.key(0), (3,))
    >>> stats.gram.shape, truth.noise_std.shape
    ((3, 11, 11), (3,))
    """
    if problem.context < problem.dim:
        x, y, truth = sample_data(problem, key, shape, dtype)
        factor = jnp.swapaxes(jnp.concatenate([x, y[..., None]], axis=-1), -1, -2)
    else:
        truth_key, factor_key = jax.random.split(key)
        truth = sample_truth(problem, truth_key, shape, dtype)
        factor = _bartlett(problem, truth, factor_key)
    return _from_factor(factor, problem.context), truth


def _bartlett(problem: NoisyRegression, truth: Truth, key: Key[Array, ""]) -> Float[Array, "*batch e e"]:
    """A square root of the Gram matrix: Bartlett's factor A of Σ, below it the labels in A's coordinates.

    With ξ the noise, `Xᵀξ ~ A z` and `‖ξ‖² ~ ‖z‖² + χ²(n−d)`, so the last row is `(Aᵀw + σz, σχ)`.
    """
    n, d, shape, dtype = problem.context, problem.dim, truth.noise_std.shape, truth.weights.dtype
    below = d * (d - 1) // 2
    normals = jax.random.normal(key, (*shape, below + 2 * d + 1), dtype)
    noise, for_chi = normals[..., below : below + d], normals[..., below + d :]
    chi = chi_from_normal(for_chi, (*(n - i for i in range(d)), max(n - d, 1)))
    place = np.zeros((d, d), dtype=int)
    place[np.tril_indices(d, -1)] = np.arange(below)
    lower = normals[..., place] * np.tri(d, k=-1).astype(dtype)
    root = lower + chi[..., :d, None] * jnp.eye(d, dtype=dtype)
    if not problem.is_isotropic:
        root = problem.covariance_root().astype(dtype) @ root
    noise_std = truth.noise_std[..., None]
    labels = jnp.einsum("...ij,...i->...j", root, truth.weights) + noise_std * noise
    rest = noise_std * chi[..., d:] * float(n > d)
    inputs = jnp.concatenate([root, jnp.zeros_like(root[..., :1])], axis=-1)
    return jnp.concatenate([inputs, jnp.concatenate([labels, rest], axis=-1)[..., None, :]], axis=-2)


def _from_factor(factor: Float[Array, "*batch e k"], count: int) -> GramStatistics:
    gram = factor @ jnp.swapaxes(factor, -1, -2)
    return GramStatistics(gram=gram, count=jnp.full(gram.shape[:-2], count))
