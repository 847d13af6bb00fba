"""Eq. (3) as the paper prints it, token by token: the slow and obvious twin of the Gram recursion."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra.models.damping import SCALED_RANGE, Damping


def forward(
    P: Float[Array, "layers heads e e"],
    Q: Float[Array, "layers heads e e"],
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    query: Float[Array, " d"],
    *,
    damping: Damping | None = None,
) -> list[Float[Array, "n+1 e"]]:
    """All tokens after every layer; the first n are the context, the last is the query `(x_query, 0)`.

    The query attends to the context and nothing attends to the query. With `damping` all tokens are divided by one
    number first, and each layer's change by another. The tokens that are returned are multiplied back.
    """
    context = jnp.concatenate([x, y[:, None]], axis=1)
    tokens = jnp.concatenate([context, jnp.append(query, 0.0)[None]], axis=0)
    scale = 1.0
    if damping is not None:
        norm = jnp.minimum(_input_norm(tokens) / damping.rho[0], SCALED_RANGE)
        scale = jnp.sqrt(jnp.maximum(1.0, jnp.maximum(jnp.sum(x**2) / damping.trace, norm)))
        tokens = tokens / scale
    history = []
    for layer, (p, q) in enumerate(zip(P, Q, strict=True)):
        change = sum(_head(p_k, q_k, tokens) for p_k, q_k in zip(p, q, strict=True))
        if damping is not None:
            labels = jnp.sum(tokens[:-1, -1] ** 2)
            ratios = _input_norm(tokens) / damping.rho[layer], labels / damping.kappa[layer]
            change = change / jnp.maximum(1.0, jnp.maximum(*ratios))
        tokens = tokens + change
        history.append(tokens * scale)
    return history


def _head(p: Float[Array, "e e"], q: Float[Array, "e e"], tokens: Float[Array, "m e"]) -> Float[Array, "m e"]:
    context = tokens[:-1]
    scores = jnp.einsum("ja,ab,ib->ij", context, q, tokens)  # ⟨e_j, Q e_i⟩
    return jnp.einsum("ij,ab,jb->ia", scores, p, context)  # Σ_j score · P e_j


def _input_norm(tokens: Float[Array, "m e"]) -> Float[Array, ""]:
    """`‖Σ‖₄` of the context, where the eigenvalues of Σ are the squared singular values of the inputs."""
    return jnp.sum(jnp.linalg.svd(tokens[:-1, :-1], compute_uv=False) ** 8) ** 0.25
