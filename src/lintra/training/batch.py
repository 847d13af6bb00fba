"""A batch of sequences to learn from, and the loss of a model on it."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from lintra.models.base import AbstractModel
from lintra.problem.loss import probed_distance
from lintra.statistics.gram import relabelled

OBJECTIVES = ("query", "truth", "bayes")

Tree = TypeVar("Tree")


class Lesson(eqx.Module):
    """Sequences to learn from.

    Attributes:
        gram: Gram matrices divided by the context length.
        target: The weights to come close to.
        probe: Directions in which closeness counts, see `probed_distance`; nothing means in all alike.
    """

    gram: Float[Array, "*batch e e"]
    target: Float[Array, "*batch d"]
    probe: Float[Array, "*batch k d"] | None

    def probed(self, difference: Float[Array, "b d"]) -> Float[Array, "b k"]:
        """The errors that a difference of weights makes."""
        return difference if self.probe is None else jnp.einsum("bkd,bd->bk", self.probe, difference)

    def unprobed(self, errors: Float[Array, "b k"]) -> Float[Array, "b d"]:
        """The transpose: from a slope in the errors to one in the weights."""
        return errors if self.probe is None else jnp.einsum("bkd,bk->bd", self.probe, errors)

    def in_unit(self, unit: float | Float[Array, "*batch"]) -> "Lesson":
        """The same sequences with labels, and so weights, divided by `unit`."""
        unit = jnp.asarray(unit, self.gram.dtype)
        return Lesson(relabelled(self.gram, unit), self.target / unit[..., None], self.probe)

    def in_own_units(self) -> "Lesson":
        """The same sequences, each with labels divided by their root mean square."""
        return self.in_unit(jnp.sqrt(self.gram[..., -1, -1]))

    def pick(self, indices: Array) -> "Lesson":
        """The sequences with these indices."""
        return jax.tree.map(lambda leaf: leaf[indices], self)


def loss(model: AbstractModel, lesson: Lesson, *, clip: float | None = None) -> Float[Array, ""]:
    """Mean loss of a model on a batch of sequences, in their precision, with the slope clipped per sequence."""
    model = cast(model, lesson.gram.dtype)
    if lesson.probe is None:
        return model.distance(lesson.gram, lesson.target, clip=clip)
    return probed_distance(model.final(lesson.gram), lesson.target, lesson.probe, clip=clip)


def cast(tree: Tree, dtype: DTypeLike) -> Tree:
    """All arrays in another precision."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)
