"""DIAG without Eq. (8): P and Q are diagonal, and every entry of the diagonals is free."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel, damped_as, scale_labels
from lintra.models.diagonal import Diagonal
from lintra.models.full import Full


class FreeDiagonal(AbstractModel):
    """A linear transformer with diagonal matrices `P = diag(p₁, …, p_d, p_y)` and Q alike.

    Eq. (8) says that the first d entries are one number. Here nothing makes them equal.

    Args:
        p: `n` times the diagonal of P, shape (layers, heads, d+1), n the training context length.
        q: The diagonal of Q, same shape.
        num_examples: The training context length n.
    """

    family: ClassVar[str] = "free-diag"
    label: ClassVar[str] = "Free Diag"
    _scaled: ClassVar[str] = "p"
    p: Float[Array, "layers heads e"]
    q: Float[Array, "layers heads e"]
    num_examples: int = eqx.field(static=True)

    def __init__(self, p: ArrayLike, q: ArrayLike, num_examples: int, dim: int | None = None):
        self.p, self.q = arguments.real_array("p", p), arguments.real_array("q", q)
        if self.p.ndim != 3 or self.p.shape != self.q.shape or 0 in self.p.shape or self.p.shape[-1] < 2:
            raise ValueError(
                f"`p` and `q` must have one shape (layers, heads, d+1), got {self.p.shape} and {self.q.shape}."
            )
        self.num_examples = arguments.whole_number("num_examples", num_examples)

    @classmethod
    def _random(cls, draw: Callable[..., Array], num_examples: int, dim: int) -> "FreeDiagonal":
        p, q = draw(2, dim + 1)
        return cls(p, q, num_examples)

    @property
    def token_dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Width of a token, d + 1."""
        return self.p.shape[-1]

    def for_label_scale(self, label_scale: float) -> "FreeDiagonal":
        """The model for labels s times as large: `D⁻¹ P D = P` and `D Q D` with D = diag(1, …, 1, 1/s)."""
        with in_64_bits():
            scale = jnp.ones(self.token_dim, self.q.dtype).at[-1].set(1 / label_scale**2)
            return scale_labels(eqx.tree_at(lambda model: model.q, self, self.q * scale), label_scale)

    def to_full(self) -> Full:
        """The same model as a member of FULL."""
        with in_64_bits():
            eye = jnp.eye(self.token_dim, dtype=self.p.dtype)
            return damped_as(Full(self.p[..., None] * eye, self.q[..., None] * eye, self.num_examples), self)

    def averaged(self) -> Diagonal:
        """DIAG with the mean of the first d entries of every diagonal."""

        def pair(diagonal: Float[Array, "layers heads e"]) -> Float[Array, "layers heads 2"]:
            return jnp.stack([diagonal[..., :-1].mean(axis=-1), diagonal[..., -1]], axis=-1)

        return Diagonal(pair(self.p), pair(self.q), self.num_examples, self.dim)
