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
    num_examples: Int[Array, "*batch"]

    def __check_init__(self):
        # Trees of axes, of flags and the like have the same structure, with leaves that are no arrays.
        if not (hasattr(self.gram, "shape") and hasattr(self.num_examples, "shape")):
            return
        gram, num_examples = self.gram.shape, self.num_examples.shape
        if len(gram) < 2 or gram[-1] != gram[-2] or gram[-1] < 2:
            raise ValueError(f"`gram` must have shape (..., d+1, d+1) with d ≥ 1, got {gram}.")
        if num_examples != gram[:-2]:
            raise ValueError(
                f"`num_examples` must have the leading axes {gram[:-2]} of `gram`, got shape {num_examples}."
            )

    @classmethod
    def from_data(cls, x: ArrayLike, y: ArrayLike) -> "GramStatistics":
        """Collect one context, `x` (n, d) and `y` (n,), or a batch of them with the same leading axes.

        Sums are in 64 bits, whatever the data is, unless JAX's 64-bit mode is off.
        """
        x, y = (_in_mode(name, value) for name, value in (("x", x), ("y", y)))
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
            chunk_stats = cls.from_data(x, y)
            total = chunk_stats if total is None else total.merge(chunk_stats)
        if total is None:
            raise ValueError("`chunks` must hold at least one piece (x, y), got none.")
        return total

    @classmethod
    def from_gram(cls, gram: ArrayLike, num_examples: ArrayLike) -> "GramStatistics":
        """Take Gram matrices of shape (..., d+1, d+1) that were computed elsewhere, and their counts n."""
        gram, counts = arguments.real_array("gram", gram), arguments.counts("num_examples", num_examples)
        arguments.require_precision("gram", gram)
        if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2] or gram.shape[-1] < 2:
            raise ValueError(f"`gram` must have shape (..., d+1, d+1) with d ≥ 1, got {gram.shape}.")
        if 0 in gram.shape:
            raise ValueError(f"`gram` must hold at least one matrix, got shape {gram.shape}.")
        if counts.ndim and counts.shape != gram.shape[:-2]:
            raise ValueError(
                f"`num_examples` must be one number or of shape {gram.shape[:-2]}, got {counts.shape}."
            )
        transpose, values = jnp.swapaxes(gram, -1, -2), arguments.concrete(gram)
        if values is not None:
            tolerance = 1e-5 * np.abs(values).max()
            if (np.abs(values - np.swapaxes(values, -1, -2)) > tolerance).any():
                raise ValueError("`gram` must be symmetric: a given matrix differs from its transpose.")
            lowest = float(np.linalg.eigvalsh(values).min())
            if lowest < -tolerance:
                raise ValueError(f"`gram` must have no negative eigenvalue, got {lowest:.3g}.")
        return cls(gram=(gram + transpose) / 2, num_examples=jnp.broadcast_to(counts, gram.shape[:-2]))

    def merge(self, other: "GramStatistics") -> "GramStatistics":
        """Statistics of both contexts read as one."""
        if self.dim != other.dim:
            raise ValueError(f"Contexts of {self.dim} and {other.dim} inputs cannot be merged.")
        if self.num_examples.shape != other.num_examples.shape:
            raise ValueError(
                f"Batches of shapes {self.num_examples.shape} and {other.num_examples.shape} cannot be merged."
            )
        one, two = arguments.in_one_precision(self.gram, other.gram)
        return GramStatistics(gram=one + two, num_examples=self.num_examples + other.num_examples)

    def divide_labels(self, label_scale: float | Float[Array, "*batch"]) -> "GramStatistics":
        """The same contexts with labels divided by `label_scale`."""
        return GramStatistics(gram=divide_labels(self.gram, label_scale), num_examples=self.num_examples)

    @property
    def label_rms(self) -> Float[Array, "*batch"]:
        """Root mean square of the labels, and 1 where all are zero."""
        mean = self.yy / self.num_examples.astype(self.gram.dtype)
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


def _in_mode(name: str, value: ArrayLike) -> Float[Array, "..."]:
    """Return an array in the precision of JAX's mode, or refuse one that would lose digits by that."""
    array = arguments.real_array(name, value)
    arguments.require_precision(name, array)
    return array.astype(float)


def divide_labels(
    gram: Float[Array, "*batch e e"], label_scale: float | Float[Array, "*batch"]
) -> Float[Array, "*batch e e"]:
    """Gram matrices of the same tokens with labels divided by `label_scale`."""
    label_scale = jnp.broadcast_to(jnp.asarray(label_scale, gram.dtype), gram.shape[:-2])[..., None]
    scale = jnp.concatenate([jnp.ones_like(gram[..., 0, :-1]), 1 / label_scale], axis=-1)
    return gram * scale[..., :, None] * scale[..., None, :]


def gram_from_factor(factor: Float[Array, "*batch e k"], num_examples: int) -> GramStatistics:
    """Return the statistics of `num_examples` examples from a factor F of their Gram matrix, G = F Fᵀ."""
    gram = factor @ jnp.swapaxes(factor, -1, -2)
    return GramStatistics(gram=gram, num_examples=jnp.full(gram.shape[:-2], num_examples))
