"""Eq. (3) as the paper prints it, token by token: the slow and obvious twin of the Gram recursion."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def forward(
    P: Float[Array, "layers heads e e"],
    Q: Float[Array, "layers heads e e"],
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    query: Float[Array, " d"],
) -> list[Float[Array, "n+1 e"]]:
    """All tokens after every layer; the first n are the context, the last is the query `(x_query, 0)`.

    The query attends to the context and nothing attends to the query.
    """
    context = jnp.concatenate([x, y[:, None]], axis=1)
    tokens = jnp.concatenate([context, jnp.append(query, 0.0)[None]], axis=0)
    history = []
    for p, q in zip(P, Q, strict=True):
        tokens = tokens + sum(_head(p_k, q_k, tokens) for p_k, q_k in zip(p, q, strict=True))
        history.append(tokens)
    return history


def _head(p: Float[Array, "e e"], q: Float[Array, "e e"], tokens: Float[Array, "m e"]) -> Float[Array, "m e"]:
    context = tokens[:-1]
    scores = jnp.einsum("ja,ab,ib->ij", context, q, tokens)  # ⟨e_j, Q e_i⟩
    return jnp.einsum("ij,ab,jb->ia", scores, p, context)  # Σ_j score · P e_j
