"""Contexts as examples, and their Gram matrices."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lintra.kernel import library, operations
from lintra.statistics.gram import GramStatistics


class Examples(eqx.Module):
    """Contexts as they were given."""

    x: Float[Array, "b n d"]
    y: Float[Array, "b n"]
    num_examples: Int[Array, " b"]


Data = Examples | GramStatistics


def statistics(data: Data) -> GramStatistics:
    """All that a model needs to know of contexts, in their precision."""
    if isinstance(data, GramStatistics):
        return data
    if library.supports(data.x, data.y):
        return GramStatistics(operations.gram(data.x, data.y), data.num_examples)
    tokens = jnp.concatenate([data.x, data.y[..., None]], axis=-1)
    return GramStatistics(jnp.einsum("bni,bnj->bij", tokens, tokens), data.num_examples)
