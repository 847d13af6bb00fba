"""The layer recursion: how a linear transformer moves its tokens, in terms of their Gram matrix alone.

Every layer moves all tokens, the query included, by one matrix `T = I + Σₖ Pₖ G Qₖ`. The matrix
`C = T … T` that has moved them since the input is the implicit linear model of Theorem 4.1,
`C = [[M, u], [−wᵀ, a]]`, and Lemma 4.3 is the line `C ← T C`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


def recursion(
    p: Float[Array, "layers heads e e"],
    q: Float[Array, "layers heads e e"],
    gram: Float[Array, "e e"],
) -> Float[Array, "layers e e"]:
    """The matrix C after every layer, for any P and Q of Eq. (3) and one context."""

    def transition(layer: tuple[Array, Array], gram: Float[Array, "e e"]) -> Float[Array, "e e"]:
        p, q = layer
        return jnp.eye(gram.shape[-1], dtype=gram.dtype) + jnp.sum(p @ gram @ q, axis=0)

    return _run(transition, (p, q), gram)


def diagonal_recursion(omega: Float[Array, "layers 2 2"], gram: Float[Array, "e e"]) -> Float[Array, "layers e e"]:
    """The matrix C after every layer when P and Q are diagonal, from `[[ω_xx, ω_xy], [ω_yx, ω_yy]]`, Eq. (10).

    With diagonal matrices `P G Q` multiplies each block of G by its own ω.
    """
    dim = gram.shape[-1] - 1
    block = jnp.asarray([0] * dim + [1])

    def transition(omega: Float[Array, "2 2"], gram: Float[Array, "e e"]) -> Float[Array, "e e"]:
        return jnp.eye(dim + 1, dtype=gram.dtype) + omega[block][:, block] * gram

    return _run(transition, omega, gram)


def _run(
    transition: Callable[..., Float[Array, "e e"]], layers: PyTree[Array], gram: Float[Array, "e e"]
) -> Float[Array, "layers e e"]:
    def step(state: tuple[Array, Array], layer: PyTree[Array]) -> tuple[tuple[Array, Array], Array]:
        gram, moved = state
        t = transition(layer, gram)
        moved = t @ moved  # Lemma 4.3
        return (t @ gram @ t.T, moved), moved

    start = (gram, jnp.eye(gram.shape[-1], dtype=gram.dtype))
    return jax.lax.scan(step, start, layers)[1]
