"""Models from which gradient descent starts."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from lintra.models.base import AbstractModel
from lintra.models.families import FAMILIES, insert_zero_layer, stack, to_family
from lintra.models.spec import ModelSpec
from lintra.training.stage import Models
from lintra.training.warm_starts import WarmStarts

_WARM_STREAM = 2**31  # folded into a key from here on; random starts use smaller numbers


@dataclass(frozen=True)
class RandomStarts:
    """Models with independent normal parameters.

    Args:
        spec: The models.
        num_starts: Number of models.
        scale: Standard deviation of the parameters.
        printed_scale: Whether the scale is that of P and Q as printed. Default: no.
        label_scale: The scale is for labels divided by this. Default: 1.
    """

    spec: ModelSpec
    num_starts: int
    scale: float
    printed_scale: bool = False
    label_scale: float = 1.0

    def __call__(self, models: Models, warm_starts: WarmStarts, key: Key[Array, ""]) -> AbstractModel:
        """Draw the models. A start depends on its index and not on how many there are."""
        spec = self.spec

        def draw(index: int) -> AbstractModel:
            return FAMILIES[spec.family].random(
                spec.num_layers,
                dim=spec.problem.dim,
                num_examples=spec.problem.num_examples,
                num_heads=spec.num_heads,
                scale=self.scale,
                key=jax.random.fold_in(key, index),
            )

        drawn = stack([draw(index) for index in range(self.num_starts)])
        drawn = drawn.from_printed() if self.printed_scale else drawn
        return drawn.for_label_scale(self.label_scale)


@dataclass(frozen=True)
class FromStage:
    """One start: the model of an earlier stage, by its name."""

    name: str

    def __call__(self, models: Models, warm_starts: WarmStarts, key: Key[Array, ""]) -> AbstractModel:
        """The model, stacked."""
        return stack([models[self.name]])


@dataclass(frozen=True)
class RandomAndWarmStarts:
    """Random starts, and warm starts with small random perturbations.

    A shallower model gets a small random layer at its beginning, in its middle and at its end. The model of a
    smaller family gets small random values in the parameters that it does not have.

    Args:
        random: The random starts.
        perturbation: Standard deviation of the perturbations.
    """

    random: RandomStarts
    perturbation: float

    def __call__(self, models: Models, warm_starts: WarmStarts, key: Key[Array, ""]) -> AbstractModel:
        """All starts, stacked."""
        spec, starts = self.random.spec, [self.random(models, warm_starts, key)]
        bases = []
        if (shallower := warm_starts.shallower) is not None:
            positions = sorted({0, shallower.num_layers // 2, shallower.num_layers})
            bases.append([insert_zero_layer(self._converted(shallower), position) for position in positions])
        if warm_starts.smaller is not None:
            bases.append([self._converted(warm_starts.smaller)])
        for number, models_of_one_kind in enumerate(bases):
            noise = replace(self.random, spec=spec, num_starts=3, scale=self.perturbation)(
                models, warm_starts, jax.random.fold_in(key, _WARM_STREAM + number)
            )
            stacked = stack(models_of_one_kind)
            starts.append(jax.tree.map(lambda at, by: at + by[: at.shape[0]], stacked, noise))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *starts)

    def _converted(self, model: AbstractModel) -> AbstractModel:
        return to_family(model, self.random.spec.family, self.random.spec.num_heads)
