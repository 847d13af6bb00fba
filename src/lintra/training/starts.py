"""Where gradient descent starts."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from lintra.models.base import AbstractModel
from lintra.models.families import FAMILIES, insert_zero_layer, stack, to_family
from lintra.models.spec import Task
from lintra.training.stage import Models


@dataclass(frozen=True)
class RandomStarts:
    """Models with independent normal parameters, one per seed."""

    task: Task
    count: int
    scale: float
    printed: bool = False  # whether the scale is that of P and Q as printed
    unit: float = 1.0  # the scale is for labels divided by this

    def __call__(self, models: Models, key: Key[Array, ""]) -> AbstractModel:
        """Draw them; a start depends on its own number and not on how many there are."""
        task = self.task

        def draw(number: int) -> AbstractModel:
            return FAMILIES[task.variant].random(
                task.layers,
                dim=task.dim,
                context=task.context,
                num_heads=task.heads,
                scale=self.scale,
                key=jax.random.fold_in(key, number),
            )

        drawn = stack([draw(number) for number in range(self.count)])
        drawn = drawn.from_printed_scale() if self.printed else drawn
        return drawn.relabelled(self.unit)


@dataclass(frozen=True)
class Only:
    """One start: a model that a stage before has found."""

    name: str

    def __call__(self, models: Models, key: Key[Array, ""]) -> AbstractModel:
        """The model, stacked."""
        return stack([models[self.name]])


@dataclass(frozen=True)
class RandomAndKnown:
    """Random starts, and besides them models that are known, a little disturbed.

    A shallower model gets a small random layer at its beginning, in its middle and at its end; a smaller
    family's model small random numbers where the larger one has more.
    """

    random: RandomStarts
    known: tuple[str, ...]
    disturbance: float

    def __call__(self, models: Models, key: Key[Array, ""]) -> AbstractModel:
        """Draw them."""
        task = self.random.task
        starts = [self.random(models, key)]
        for number, name in enumerate(self.known):
            noise = replace(self.random, count=3, scale=self.disturbance)(
                models, jax.random.fold_in(key, 2**31 + number)
            )
            model = to_family(models[name], task.variant, task.heads)
            places = sorted({0, model.num_layers // 2, model.num_layers}) if name == "shallower" else [None]
            padded = stack([insert_zero_layer(model, place) for place in places])
            starts.append(jax.tree.map(lambda at, by: at + by[: at.shape[0]], padded, noise))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *starts)
