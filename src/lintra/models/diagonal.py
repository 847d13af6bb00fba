"""DIAG: P and Q are diagonal with one number for all inputs and one for the label, Eq. (8)."""

import abc
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel import library, operations
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel, check_matrices, damped_as, scale_labels
from lintra.models.damping import Ranges
from lintra.models.full import Full, full_states
from lintra.models.recursion import (
    Gram,
    all_ranges,
    clip_limit,
    data_cotangents,
    in_one_batch,
    plain_loss,
    run_layers,
)
from lintra.problem.loss import half_square


def diagonal_recursion(
    omega: Float[Array, "layers 2 2"], gram: Gram, ranges: Ranges | None = None, *, native: bool = True
) -> Float[Array, "*batch d"]:
    """The implicit weights after the last layer when P and Q are diagonal, Eq. (10).

    A layer is `[[ω_xx, ω_xy], [ω_yx, ω_yy]]`.
    """
    if native and library.supports(omega, gram):
        return in_one_batch(partial(_diagonal, omega, all_ranges(ranges, omega)), gram)
    return -diagonal_states(omega, gram, ranges, native=False)[..., -1, -1, :-1]


def diagonal_gradients(
    omega: Float[Array, "layers 2 2"],
    gram: Float[Array, "b e e"],
    cotangent: Float[Array, "b d"],
    ranges: Ranges | None = None,
    *,
    native: bool = True,
) -> Float[Array, "b layers 2 2"]:
    """For every context, the gradient of `⟨cotangent, w⟩` by the ω, with w the weights after the last layer."""
    if native and library.supports(gram):
        thresholds = all_ranges(ranges, omega)
        return operations.diagonal_vjp(omega[None], thresholds[None], gram[None], cotangent[None])[0][0]

    def along(omega: Array, gram: Float[Array, "e e"], cotangent: Float[Array, " d"]) -> Float[Array, ""]:
        return diagonal_recursion(omega, gram, ranges, native=False) @ cotangent

    return jax.vmap(jax.grad(along), in_axes=(None, 0, 0))(omega, gram, cotangent)


def diagonal_states(
    omega: Float[Array, "layers 2 2"], gram: Gram, ranges: Ranges | None = None, *, native: bool = True
) -> Float[Array, "*batch layers e e"]:
    """The matrix C after every layer when P and Q are diagonal.

    With diagonal matrices `P G Q` multiplies each block of G by its own ω. To the kernel it is two heads of full
    matrices, one for what inputs do and one for what labels do.
    """
    dim = gram.shape[-1] - 1
    block = jnp.asarray([0] * dim + [1])
    if native and library.supports(omega, gram):
        eye = jnp.eye(dim + 1, dtype=omega.dtype)
        p = jnp.moveaxis(omega, -1, -2)[:, :, block, None] * eye
        q = jnp.broadcast_to(jnp.eye(2, dtype=omega.dtype)[:, block, None] * eye, p.shape)
        return full_states(p, q, gram, ranges)

    def transition(omega: Float[Array, "2 2"], gram: Float[Array, "e e"]) -> Float[Array, "e e"]:
        return jnp.eye(dim + 1, dtype=gram.dtype) + omega[block][:, block] * gram

    return in_one_batch(jax.vmap(partial(run_layers, transition, omega, ranges)), gram)


@jax.custom_vjp
def _diagonal(omega: Array, ranges: Ranges, gram: Float[Array, "b e e"]) -> Float[Array, "b d"]:
    return operations.diagonal_forward(omega[None], ranges[None], gram[None])[0][0]


def _diagonal_backward(inputs: tuple[Array, ...], cotangent: Float[Array, "b d"]) -> tuple[Array, ...]:
    omega, ranges, gram = inputs
    (omega_gradient,) = operations.diagonal_vjp(omega[None], ranges[None], gram[None], cotangent[None])

    def plain(ranges: Ranges, gram: Float[Array, "b e e"]) -> Float[Array, "b d"]:
        return diagonal_recursion(omega, gram, ranges, native=False)

    return omega_gradient[0].sum(axis=0), *data_cotangents(plain, (ranges, gram), cotangent)


_diagonal.defvjp(lambda *inputs: (_diagonal(*inputs), inputs), _diagonal_backward)


def diagonal_loss(
    omega: Float[Array, "layers 2 2"],
    gram: Float[Array, "b e e"],
    target: Float[Array, "b d"],
    ranges: Ranges | None = None,
    *,
    clip_norm: float | None = None,
    native: bool = True,
) -> Float[Array, ""]:
    """Mean distance to the target for DIAG and GD++, from the ω of every layer."""
    if native and library.supports(gram):
        return _diagonal_loss(omega, all_ranges(ranges, omega), gram, target, clip_limit(clip_norm, gram))
    return plain_loss(partial(diagonal_recursion, omega, ranges=ranges, native=False), gram, target, clip_norm)


@jax.custom_vjp
def _diagonal_loss(omega: Array, ranges: Ranges, gram: Array, target: Array, clip_norm: Array) -> Float[Array, ""]:
    return half_square(diagonal_recursion(omega, gram, ranges) - target).mean()


def _diagonal_loss_forward(
    omega: Array, ranges: Ranges, gram: Array, target: Array, clip_norm: Array
) -> tuple[Array, Array]:
    losses, gradients = operations.diagonal_value_and_grad(
        omega[None], ranges[None], gram[None], target[None], clip_norm[None]
    )
    return losses[0].mean(), gradients[0].mean(axis=0)


_diagonal_loss.defvjp(_diagonal_loss_forward, lambda gradient, scale: (scale * gradient, None, None, None, None))


class AbstractDiagonal(AbstractModel):
    """A model whose layers are four numbers: what DIAG and GD++ share."""

    @property
    @abc.abstractmethod
    def omega(self) -> Float[Array, "layers 2 2"]:
        """`[[ω_xx, ω_xy], [ω_yx, ω_yy]]` per layer for a Gram matrix divided by `num_examples`, Eq. (9)."""

    def final_weights(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch d"]:
        """The implicit weights after the last layer."""
        return diagonal_recursion(self.omega, gram, self.ranges)

    def loss(
        self, gram: Float[Array, "b e e"], target: Float[Array, "b d"], *, clip_norm: float | None = None
    ) -> Float[Array, ""]:
        """Mean of `½‖w − target‖²`, which the kernel makes together with its gradient."""
        return diagonal_loss(self.omega, gram, target, self.ranges, clip_norm=clip_norm)

    def layer_maps(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch layers e e"]:
        """The matrix C after every layer."""
        return diagonal_states(self.omega, gram, self.ranges)


class Diagonal(AbstractDiagonal):
    """A linear transformer with diagonal parameter matrices, Eqs. (8)–(10).

    With one head the four ω of a layer obey `ω_xx ω_yy = ω_xy ω_yx`; two heads set them free.

    Arguments:
        p: `n (p_x, p_y)` per layer and head, shape (layers, heads, 2), n the training context length.
        q: `(q_x, q_y)`, same shape.
        num_examples: The training context length n.
        dim: Number of inputs d; the same numbers serve any d, see `with_dim`.
    """

    family: ClassVar[str] = "diag"
    label: ClassVar[str] = "Diag"
    smaller: ClassVar[str | None] = "gd++"
    _scaled: ClassVar[str] = "p"
    p: Float[Array, "layers heads 2"]
    q: Float[Array, "layers heads 2"]
    num_examples: int = eqx.field(static=True)
    token_dim: int = eqx.field(static=True)

    def __init__(self, p: ArrayLike, q: ArrayLike, num_examples: int, dim: int):
        self.p, self.q = arguments.real_array("p", p), arguments.real_array("q", q)
        if self.p.ndim != 3 or self.p.shape[-1] != 2 or 0 in self.p.shape or self.q.shape != self.p.shape:
            raise ValueError(
                f"`p` and `q` must have one shape (layers, heads, 2), got {self.p.shape} and {self.q.shape}."
            )
        self.p, self.q = arguments.in_one_precision(self.p, self.q)
        self.num_examples = arguments.whole_number("num_examples", num_examples)
        self.token_dim = arguments.whole_number("dim", dim) + 1

    @classmethod
    def _random(cls, draw: Callable[..., Array], num_examples: int, dim: int) -> "Diagonal":
        p, q = draw(2, 2)
        return cls(p, q, num_examples, dim)

    @classmethod
    def from_matrices(cls, P: ArrayLike, Q: ArrayLike, num_examples: int) -> "Diagonal":
        """The model of Eq. (3) with these matrices, which must have the form of Eq. (8)."""
        P, Q = check_matrices(P, Q)
        p, q = _diagonal_pair("P", P), _diagonal_pair("Q", Q)
        return cls(arguments.whole_number("num_examples", num_examples) * p, q, num_examples, P.shape[-1] - 1)

    @property
    def omega(self) -> Float[Array, "layers 2 2"]:
        """`[[ω_xx, ω_xy], [ω_yx, ω_yy]]` per layer for a Gram matrix divided by `num_examples`, Eq. (9)."""
        with in_64_bits():
            return jnp.einsum("lhi,lhj->lij", self.p, self.q)

    def matrices(self) -> tuple[Float[np.ndarray, "layers heads e e"], Float[np.ndarray, "layers heads e e"]]:
        """P and Q for which Eq. (3) holds as printed, on unscaled tokens."""
        P, Q = _expand(self.p, self.dim), _expand(self.q, self.dim)
        return np.asarray(P) / self.num_examples, np.array(Q)

    @classmethod
    def from_smaller(cls, model: AbstractModel) -> "Diagonal":
        """The same model as a member of DIAG, given as one of GD++."""
        return model.to_diagonal()  # pyright: ignore[reportAttributeAccessIssue]

    def for_label_scale(self, label_scale: float) -> "Diagonal":
        """The model for labels `label_scale` times as large."""
        with in_64_bits():
            scale = jnp.asarray([1.0, 1 / label_scale**2], self.q.dtype)
            return scale_labels(eqx.tree_at(lambda model: model.q, self, self.q * scale), label_scale)

    def with_dim(self, dim: int) -> "Diagonal":
        """The same numbers for another number of inputs, as printed: thresholds of damping are for one d."""
        return Diagonal(self.p, self.q, self.num_examples, dim)

    def to_full(self) -> Full:
        """The same model as a member of FULL."""
        full = Full(_expand(self.p, self.dim), _expand(self.q, self.dim), self.num_examples)
        return damped_as(full, self)


def _expand(pair: Float[Array, "layers heads 2"], dim: int) -> Float[Array, "layers heads e e"]:
    """Put `(x, y)` on the diagonal as `(x, …, x, y)`."""
    with in_64_bits():
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
