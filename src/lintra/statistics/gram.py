"""Gram statistics of a context."""

from collections.abc import Iterable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from lintra import arguments


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
        x, y = (arguments.real_array(name, value).astype(float) for name, value in (("x", x), ("y", y)))
        if x.ndim < 2 or y.shape != x.shape[:-1]:
            raise ValueError(
                f"`x` and `y` must have shapes (..., n, d) and (..., n), got {x.shape} and {y.shape}."
            )
        if 0 in x.shape:
            raise ValueError(f"`x` must hold at least one example of one input, got shape {x.shape}.")
        factor = jnp.swapaxes(jnp.concatenate([x, y[..., None]], axis=-1), -1, -2)
        stats = gram_from_factor(factor, x.shape[-2])
        gram = arguments.concrete(stats.gram)
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
        gram, counts = arguments.real_array("gram", gram), arguments.counts("count", count)
        if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2] or gram.shape[-1] < 2:
            raise ValueError(f"`gram` must have shape (..., d+1, d+1) with d ≥ 1, got {gram.shape}.")
        if 0 in gram.shape:
            raise ValueError(f"`gram` must hold at least one matrix, got shape {gram.shape}.")
        if counts.ndim and counts.shape != gram.shape[:-2]:
            raise ValueError(f"`count` must be one number or of shape {gram.shape[:-2]}, got {counts.shape}.")
        transpose, values = jnp.swapaxes(gram, -1, -2), arguments.concrete(gram)
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


def gram_from_factor(factor: Float[Array, "*batch e k"], count: int) -> GramStatistics:
    """Return the statistics of `count` examples from a factor F of their Gram matrix, G = F Fᵀ."""
    gram = factor @ jnp.swapaxes(factor, -1, -2)
    return GramStatistics(gram=gram, count=jnp.full(gram.shape[:-2], count))
