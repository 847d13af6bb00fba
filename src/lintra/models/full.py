"""FULL: every entry of P and Q is free."""

from collections.abc import Callable, Mapping
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
from lintra.models.base import AbstractModel, check_matrices, scale_labels
from lintra.models.damping import Ranges
from lintra.models.recursion import (
    Gram,
    all_ranges,
    clip_limit,
    data_cotangents,
    in_one_batch,
    plain_loss,
    run_layers,
    run_ratios,
)
from lintra.problem.loss import half_square


def full_recursion(
    p: Float[Array, "layers heads e e"],
    q: Float[Array, "layers heads e e"],
    gram: Gram,
    ranges: Ranges | None = None,
    *,
    native: bool = True,
) -> Float[Array, "*batch d"]:
    """The implicit weights after the last layer, for any P and Q of Eq. (3) and any number of contexts."""
    if native and library.supports(p, q, gram):
        return in_one_batch(partial(_full, p, q, all_ranges(ranges, p)), gram)
    return -full_states(p, q, gram, ranges, native=False)[..., -1, -1, :-1]


def full_states(
    p: Float[Array, "layers heads e e"],
    q: Float[Array, "layers heads e e"],
    gram: Gram,
    ranges: Ranges | None = None,
    *,
    native: bool = True,
) -> Float[Array, "*batch layers e e"]:
    """The matrix C after every layer, for any P and Q of Eq. (3)."""

    def plain(gram: Gram) -> Float[Array, "b layers e e"]:
        return jax.vmap(partial(run_layers, _transition, (p, q), ranges))(gram)

    if native and library.supports(p, q, gram):
        return in_one_batch(partial(_states, p, q, all_ranges(ranges, p)), gram)
    return in_one_batch(plain, gram)


def _transition(layer: tuple[Array, Array], gram: Float[Array, "e e"]) -> Float[Array, "e e"]:
    """`T = I + Σₖ Pₖ G Qₖ`."""
    p, q = layer
    return jnp.eye(gram.shape[-1], dtype=gram.dtype) + jnp.sum(p @ gram @ q, axis=0)


@jax.custom_vjp
def _full(p: Array, q: Array, ranges: Ranges, gram: Float[Array, "b e e"]) -> Float[Array, "b d"]:
    return operations.full_forward(p[None], q[None], ranges[None], gram[None])[0][0]


def _full_backward(inputs: tuple[Array, ...], cotangent: Float[Array, "b d"]) -> tuple[Array, ...]:
    p, q, ranges, gram = inputs
    p_gradient, q_gradient = operations.full_vjp(p[None], q[None], ranges[None], gram[None], cotangent[None])

    def plain(ranges: Ranges, gram: Float[Array, "b e e"]) -> Float[Array, "b d"]:
        return full_recursion(p, q, gram, ranges, native=False)

    return p_gradient[0], q_gradient[0], *data_cotangents(plain, (ranges, gram), cotangent)


_full.defvjp(lambda *inputs: (_full(*inputs), inputs), _full_backward)


@jax.custom_vjp
def _states(p: Array, q: Array, ranges: Ranges, gram: Float[Array, "b e e"]) -> Float[Array, "b layers e e"]:
    return operations.full_states(p[None], q[None], ranges[None], gram[None])[0][0]


def _states_backward(inputs: tuple[Array, ...], cotangent: Array) -> tuple[Array, ...]:
    def plain(p: Array, q: Array, ranges: Ranges, gram: Array) -> Array:
        return full_states(p, q, gram, ranges, native=False)

    return jax.vjp(plain, *inputs)[1](cotangent)


_states.defvjp(lambda *inputs: (_states(*inputs), inputs), _states_backward)


def full_loss(
    p: Float[Array, "layers heads e e"],
    q: Float[Array, "layers heads e e"],
    gram: Float[Array, "b e e"],
    target: Float[Array, "b d"],
    ranges: Ranges | None = None,
    *,
    clip_norm: float | None = None,
    native: bool = True,
) -> Float[Array, ""]:
    """Mean loss `½‖w − target‖²` of FULL; the kernel computes it and its gradient in one pass."""
    if native and library.supports(gram):
        return _full_loss(p, q, all_ranges(ranges, p), gram, target, clip_limit(clip_norm, gram))
    return plain_loss(partial(full_recursion, p, q, ranges=ranges, native=False), gram, target, clip_norm)


@jax.custom_vjp
def _full_loss(
    p: Array, q: Array, ranges: Ranges, gram: Array, target: Array, clip_norm: Array
) -> Float[Array, ""]:
    return half_square(full_recursion(p, q, gram, ranges) - target).mean()


def _full_loss_forward(
    p: Array, q: Array, ranges: Ranges, gram: Array, target: Array, clip_norm: Array
) -> tuple[Array, tuple[Array, Array]]:
    losses, p_gradient, q_gradient = operations.full_value_and_grad(
        p[None], q[None], ranges[None], gram[None], target[None], clip_norm[None]
    )
    return losses[0].mean(), (p_gradient[0] / len(gram), q_gradient[0] / len(gram))


_full_loss.defvjp(
    _full_loss_forward,
    lambda gradients, scale: (scale * gradients[0], scale * gradients[1], None, None, None, None),
)


class Full(AbstractModel):
    """A linear transformer with full parameter matrices, Eq. (3).

    Arguments:
        p: `n P` for the P of Eq. (3), shape (layers, heads, d+1, d+1), n the training context length.
        q: Q of Eq. (3), same shape.
        num_examples: The training context length n.

    >>> model = Full.random(num_layers=3)
    >>> P, Q = model.matrices()
    >>> P.shape
    (3, 1, 11, 11)
    """

    family: ClassVar[str] = "full"
    label: ClassVar[str] = "Full"
    smaller: ClassVar[str | None] = "diag"
    _scaled: ClassVar[str] = "p"
    p: Float[Array, "layers heads e e"]
    q: Float[Array, "layers heads e e"]
    num_examples: int = eqx.field(static=True)

    def __init__(self, p: ArrayLike, q: ArrayLike, num_examples: int):
        self.p, self.q = check_matrices(p, q, names=("p", "q"))
        self.num_examples = arguments.whole_number("num_examples", num_examples)

    @classmethod
    def _random(cls, draw: Callable[..., Array], num_examples: int, dim: int) -> "Full":
        p, q = draw(2, dim + 1, dim + 1)
        return cls(p, q, num_examples)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, ArrayLike], num_examples: int, dim: int) -> "Full":
        """The model with these parameters."""
        return cls(**parameters, num_examples=num_examples)

    @classmethod
    def from_matrices(cls, P: ArrayLike, Q: ArrayLike, num_examples: int) -> "Full":
        """The model of Eq. (3) with these matrices, of shape (layers, heads, d+1, d+1)."""
        P, Q = check_matrices(P, Q)
        return cls(arguments.whole_number("num_examples", num_examples) * P, Q, num_examples)

    @classmethod
    def from_attention(
        cls, W_K: ArrayLike, W_Q: ArrayLike, W_V: ArrayLike, W_P: ArrayLike, num_examples: int
    ) -> "Full":
        """The model of Eq. (1), from key, query, value and projection matrices per layer and head.

        Shapes are (layers, heads, k, d+1) for keys and queries, (layers, heads, v, d+1) for values and
        (layers, heads, d+1, v) for projections; `P = W_P W_V` and `Q = W_Kᵀ W_Q`.
        """
        named = {"W_K": W_K, "W_Q": W_Q, "W_V": W_V, "W_P": W_P}
        arrays = {name: arguments.real_array(name, value) for name, value in named.items()}
        for name, array in arrays.items():
            if array.ndim != 4:
                raise ValueError(f"`{name}` must have axes (layers, heads, rows, columns), got {array.shape}.")
        shapes = {name: array.shape for name, array in arrays.items()}
        head, token = shapes["W_V"][:2], shapes["W_V"][3]
        if shapes["W_K"] != shapes["W_Q"] or shapes["W_K"][:2] != head or shapes["W_K"][3] != token:
            raise ValueError(
                f"`W_K` and `W_Q` must have one shape (layers, heads, k, d+1) that fits `W_V`, got {shapes}."
            )
        if shapes["W_P"] != (*head, token, shapes["W_V"][2]):
            raise ValueError(f"`W_P` must have shape (layers, heads, d+1, v) that fits `W_V`, got {shapes}.")
        keys = jnp.swapaxes(arrays["W_K"], -1, -2)
        return cls.from_matrices(arrays["W_P"] @ arrays["W_V"], keys @ arrays["W_Q"], num_examples)

    def for_label_scale(self, label_scale: float) -> "Full":
        """The model for labels s times as large: `D⁻¹ P D` and `D Q D` with D = diag(1, …, 1, 1/s)."""
        with in_64_bits():
            scale = jnp.ones(self.token_dim, self.p.dtype).at[-1].set(1 / label_scale)
            matrices = self.p / scale[:, None] * scale, self.q * scale[:, None] * scale
            model = eqx.tree_at(lambda model: (model.p, model.q), self, matrices)
            return scale_labels(model, label_scale)

    @classmethod
    def from_smaller(cls, model: AbstractModel) -> "Full":
        """The same model as a member of FULL."""
        full = model.to_full()
        assert isinstance(full, Full)
        return full

    def to_full(self) -> "Full":
        """The model itself."""
        return self

    @property
    def token_dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Width of a token, d + 1."""
        return self.p.shape[-1]

    def matrices(self) -> tuple[Float[np.ndarray, "layers heads e e"], Float[np.ndarray, "layers heads e e"]]:
        """P and Q for which Eq. (3) holds as printed, on unscaled tokens."""
        return np.asarray(self.p) / self.num_examples, np.array(self.q)

    def final_weights(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch d"]:
        """The implicit weights after the last layer."""
        return full_recursion(self.p, self.q, gram, self.ranges)

    def loss(
        self, gram: Float[Array, "b e e"], target: Float[Array, "b d"], *, clip_norm: float | None = None
    ) -> Float[Array, ""]:
        """Mean of `½‖w − target‖²`, which the kernel makes together with its gradient."""
        return full_loss(self.p, self.q, gram, target, self.ranges, clip_norm=clip_norm)

    def layer_maps(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch layers e e"]:
        """The matrix C after every layer."""
        return full_states(self.p, self.q, gram, self.ranges)

    def range_ratios(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch rows 2"]:
        """The ratio of the context, and `‖Σ‖₄ / ρ` and `λ / κ` of every layer, in plain JAX."""
        ratios = partial(run_ratios, _transition, (self.p, self.q), all_ranges(self.ranges, self.p))
        return in_one_batch(jax.vmap(ratios), gram)
