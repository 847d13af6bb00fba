"""The families of models, the smallest last, and conversions between them."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus

FAMILIES: dict[str, type[Full] | type[Diagonal] | type[GDPlusPlus]] = {
    family.family: family for family in (Full, Diagonal, GDPlusPlus)
}

VARIANTS = ("gd++", "diag", "full")
"""The families, each after those that it contains."""


def to_family(model: AbstractModel, family: str, num_heads: int) -> AbstractModel:
    """Convert a model to a family that contains its own, with at least as many heads.

    Args:
        model: The model.
        family: The name of a family that is as large or larger.
        num_heads: Number of heads of the result; the first head is split. GD++ has one.

    Returns:
        A model that gives the same weights.
    """
    if family == "full" and isinstance(model, GDPlusPlus | Diagonal):
        model = model.to_full()
    if family == "diag" and isinstance(model, GDPlusPlus):
        model = model.to_diagonal()
    more = num_heads - model.num_heads
    if not more or family == "gd++":
        return model
    shares = split_heads(more + 1) ** 0.5  # P and Q multiply

    def split(leaf: Float[Array, "layers heads ..."]) -> Float[Array, "layers more ..."]:
        first = leaf[:, :1] * shares.reshape(1, -1, *[1] * (leaf.ndim - 2))
        return jnp.concatenate([first, leaf[:, 1:]], axis=1)

    return jax.tree.map(split, model)


def split_heads(num_heads: int) -> Float[np.ndarray, " heads"]:
    """Fractions, summing to one, by which one head is split into several.

    They are unequal, so that training can separate the heads.
    """
    shares = 1 + 0.5 * np.cos(np.arange(num_heads))
    return shares / shares.sum()


def insert_zero_layer(model: AbstractModel, position: int | None) -> AbstractModel:
    """Insert a layer of zeros, which changes no token, at a position; `None` inserts none."""
    if position is None:
        return model
    return jax.tree.map(lambda leaf: jnp.insert(leaf, position, 0.0, axis=0), model)


def stack(models: list[AbstractModel]) -> AbstractModel:
    """Stack models of one shape along a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)


def pad_layers(model: AbstractModel, num_layers: int) -> AbstractModel:
    """Append layers of zeros, which change no token, up to a number of layers."""

    def pad(leaf: Float[Array, "layers heads ..."]) -> Float[Array, "more heads ..."]:
        return jnp.pad(leaf, [(0, num_layers - leaf.shape[0])] + [(0, 0)] * (leaf.ndim - 1))

    return jax.tree.map(pad, model)
