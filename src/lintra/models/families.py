"""The families of models, the smallest first, and conversions between them."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus
from lintra.registry import Registry

FAMILIES: Registry[type[AbstractModel]] = Registry(
    "families", {family.family: family for family in (GDPlusPlus, Diagonal, Full)}
)
"""Families of models by name, each after those that it contains.

A package adds its own by an entry point of the group `lintra.families`.
"""

PAPER_FAMILIES = tuple(family.family for family in (GDPlusPlus, Diagonal, Full))
"""The families of the paper by name, in the order of Table 1."""


def without_thresholds(model: AbstractModel) -> AbstractModel:
    """Return a model as printed, with no damping stored: thresholds are measured after training."""
    return model.without_damping().store_damping(None)


def to_family(model: AbstractModel, family: str, num_heads: int) -> AbstractModel:
    """Convert a model to a family that contains its own, with at least as many heads.

    Args:
        model: The model.
        family: The name of a family that is as large or larger.
        num_heads: Number of heads of the result; the first head is split. GD++ has one.

    Returns:
        A model that gives the same weights.
    """
    model = without_thresholds(model)
    path, name = [], family
    while name is not None and name != model.family:
        path.append(FAMILIES[name])
        name = path[-1].smaller
    if name is None:
        raise ValueError(f"`model` of family {model.family} is not a member of the family {family}.")
    for larger in reversed(path):
        model = larger.from_smaller(model)
    more = num_heads - model.num_heads
    if not more or isinstance(model, GDPlusPlus):  # whose heads only add up
        return model
    shares = split_heads(more + 1) ** 0.5  # P and Q multiply

    def split(leaf: Float[Array, "layers heads ..."]) -> Float[Array, "layers more ..."]:
        first = leaf[:, :1] * shares.reshape(1, -1, *[1] * (leaf.ndim - 2))
        return jnp.concatenate([first, leaf[:, 1:]], axis=1)

    return jax.tree.map(split, model)


def smallest_family(model: AbstractModel) -> str:
    """Name of the smallest family that contains a model, judged by its weights.

    >>> gdpp = GDPlusPlus([[[0.1, -0.3]]], num_examples=20, dim=3)
    >>> smallest_family(gdpp.to_full()), smallest_family(Full.random(1, dim=3))
    ('gd++', 'full')
    """
    name, smaller = model.family, type(model).smaller
    P, Q = model.matrices()
    while smaller is not None:
        try:
            with in_64_bits():
                FAMILIES[smaller].from_matrices(P, Q, model.num_examples)
        except ValueError:  # the matrices do not have its form
            break
        name, smaller = smaller, FAMILIES[smaller].smaller
    return name


def num_used_layers(model: AbstractModel) -> int:
    """Number of layers that change tokens: P and Q of one head are not zero."""
    P, Q = model.matrices()
    is_used = np.any(P, axis=(2, 3)) & np.any(Q, axis=(2, 3))  # (layers, heads)
    return int(np.any(is_used, axis=-1).sum())


def split_heads(num_heads: int) -> Float[np.ndarray, " heads"]:
    """Fractions, summing to one, by which one head is split into several.

    They are unequal, so that training can separate the heads.
    """
    shares = 1 + 0.5 * np.cos(np.arange(num_heads))
    return shares / shares.sum()


def insert_zero_layer(model: AbstractModel, position: int | None) -> AbstractModel:
    """Insert a layer of zeros, which changes no token, at a position; `None` inserts none."""
    model = without_thresholds(model)
    if position is None:
        return model
    return jax.tree.map(lambda leaf: jnp.insert(leaf, position, 0.0, axis=0), model)


def stack(models: list[AbstractModel]) -> AbstractModel:
    """Stack models of one shape along a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(without_thresholds, models))


def pad_layers(model: AbstractModel, num_layers: int) -> AbstractModel:
    """Append layers of zeros, which change no token, up to a number of layers."""

    def pad(leaf: Float[Array, "layers heads ..."]) -> Float[Array, "more heads ..."]:
        return jnp.pad(leaf, [(0, num_layers - leaf.shape[0])] + [(0, 0)] * (leaf.ndim - 1))

    return jax.tree.map(pad, without_thresholds(model))
