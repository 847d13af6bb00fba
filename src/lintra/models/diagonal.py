"""DIAG: P and Q are diagonal with one number for all inputs and one for the label, Eq. (8)."""

import abc
from collections.abc import Callable, Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra import checks
from lintra.models.base import AbstractModel, check_matrices
from lintra.models.full import Full
from lintra.objective import diagonal_distance
from lintra.recursion import diagonal_recursion, diagonal_states


class AbstractDiagonal(AbstractModel):
    """A model whose layers are four numbers: what DIAG and GD++ share."""

    @property
    @abc.abstractmethod
    def omega(self) -> Float[Array, "layers 2 2"]:
        """`[[ω_xx, ω_xy], [ω_yx, ω_yy]]` per layer for a Gram matrix divided by `context`, Eq. (9)."""

    def final(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch d"]:
        """The implicit weights after the last layer."""
        return diagonal_recursion(self.omega, gram)

    def distance(
        self, gram: Float[Array, "b e e"], target: Float[Array, "b d"], *, clip: float | None = None
    ) -> Float[Array, ""]:
        """Mean of `½‖w − target‖²`, which the kernel makes together with its slope."""
        return diagonal_distance(self.omega, gram, target, clip=clip)

    def maps(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch layers e e"]:
        """The matrix C after every layer."""
        return diagonal_states(self.omega, gram)


class Diagonal(AbstractDiagonal):
    """A linear transformer with diagonal parameter matrices, Eqs. (8)–(10).

    With one head the four ω of a layer obey `ω_xx ω_yy = ω_xy ω_yx`; two heads set them free.

    Arguments:
        p: `n (p_x, p_y)` per layer and head, shape (layers, heads, 2), n the training context length.
        q: `(q_x, q_y)`, same shape.
        context: The training context length n.
        dim: Number of inputs d; the same numbers serve any d, see `at`.
    """

    family: ClassVar[str] = "diag"
    _scaled: ClassVar[str] = "p"
    p: Float[Array, "layers heads 2"]
    q: Float[Array, "layers heads 2"]
    context: int = eqx.field(static=True)
    token_dim: int = eqx.field(static=True)

    def __init__(self, p: ArrayLike, q: ArrayLike, context: int, dim: int):
        self.p, self.q = checks.real_array("p", p), checks.real_array("q", q)
        if self.p.ndim != 3 or self.p.shape[-1] != 2 or 0 in self.p.shape or self.q.shape != self.p.shape:
            raise ValueError(
                f"`p` and `q` must have one shape (layers, heads, 2), got {self.p.shape} and {self.q.shape}."
            )
        self.context = checks.whole_number("context", context)
        self.token_dim = checks.whole_number("dim", dim) + 1

    @classmethod
    def _random(cls, draw: Callable[..., Array], context: int, dim: int) -> "Diagonal":
        p, q = draw(2, 2)
        return cls(p, q, context, dim)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, ArrayLike], context: int, dim: int) -> "Diagonal":
        """The model with these own numbers."""
        return cls(**parameters, context=context, dim=dim)

    @classmethod
    def from_matrices(cls, P: ArrayLike, Q: ArrayLike, context: int) -> "Diagonal":
        """The model of Eq. (3) with these matrices, which must have the form of Eq. (8)."""
        P, Q = check_matrices(P, Q)
        p, q = _diagonal_pair("P", P), _diagonal_pair("Q", Q)
        return cls(checks.whole_number("context", context) * p, q, context, P.shape[-1] - 1)

    @property
    def omega(self) -> Float[Array, "layers 2 2"]:
        """`[[ω_xx, ω_xy], [ω_yx, ω_yy]]` per layer for a Gram matrix divided by `context`, Eq. (9)."""
        return jnp.einsum("lhi,lhj->lij", self.p, self.q)

    def matrices(self) -> tuple[Float[np.ndarray, "layers heads e e"], Float[np.ndarray, "layers heads e e"]]:
        """P and Q for which Eq. (3) holds as printed, on unscaled tokens."""
        P, Q = _expand(self.p, self.dim), _expand(self.q, self.dim)
        return np.asarray(P) / self.context, np.array(Q)

    def relabelled(self, unit: float) -> "Diagonal":
        """The model for labels `unit` times as large."""
        scale = jnp.asarray([1.0, 1 / unit**2], self.q.dtype)
        return eqx.tree_at(lambda model: model.q, self, self.q * scale)

    def at(self, dim: int) -> "Diagonal":
        """The same numbers for another number of inputs."""
        return Diagonal(self.p, self.q, self.context, dim)

    def to_full(self) -> Full:
        """The same model as a member of FULL."""
        return Full(_expand(self.p, self.dim), _expand(self.q, self.dim), self.context)


def _expand(pair: Float[Array, "layers heads 2"], dim: int) -> Float[Array, "layers heads e e"]:
    """Put `(x, y)` on the diagonal as `(x, …, x, y)`."""
    diagonal = pair[..., jnp.asarray([0] * dim + [1])]
    return diagonal[..., None] * jnp.eye(dim + 1, dtype=pair.dtype)


def _diagonal_pair(name: str, matrix: Float[Array, "layers heads e e"]) -> Float[Array, "layers heads 2"]:
    pair = jnp.stack([matrix[..., 0, 0], matrix[..., -1, -1]], axis=-1)
    off = float(jnp.abs(matrix - _expand(pair, matrix.shape[-1] - 1)).max())
    if off > 1e-12 * float(jnp.abs(matrix).max()):
        raise ValueError(
            f"`{name}` must be diagonal with one number for all inputs, Eq. (8); an entry is off by {off:.3g}. "
            "Use `Full.from_matrices` for other matrices."
        )
    return pair
