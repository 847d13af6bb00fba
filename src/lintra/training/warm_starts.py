"""Models to start from: shallower, of a smaller family, or with fewer heads."""

from dataclasses import dataclass, fields, replace

from lintra.models.base import AbstractModel
from lintra.models.families import FAMILIES
from lintra.models.gdpp import GDPlusPlus
from lintra.models.spec import ModelSpec


@dataclass(frozen=True, eq=False)
class WarmStarts:
    """Trained models from which training can start, besides random starts. All are for the same problem.

    Args:
        shallower: A model of the same family and number of heads with one layer less. Needs `smaller` too where
            there is a smaller family.
        smaller: A model of the next smaller family with as many layers and heads; GD++ has one head.
        fewer_heads: A model of the same family and number of layers with one head less.
    """

    shallower: AbstractModel | None = None
    smaller: AbstractModel | None = None
    fewer_heads: AbstractModel | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def candidates(self) -> dict[str, AbstractModel]:
        """The models that are given, the one of a smaller family under the name of its family."""
        smaller = {} if self.smaller is None else {self.smaller.family: self.smaller}
        others = {"fewer_heads": self.fewer_heads, "shallower": self.shallower}
        return smaller | {name: model for name, model in others.items() if model is not None}

    def check(self, spec: ModelSpec) -> None:
        """Reject models that do not fit to the model to train.

        Raises:
            ValueError: With the field, the sizes that it must have and those that it has.
        """
        smaller = smaller_spec(spec)
        if self.smaller is not None and smaller is None:
            raise ValueError(f"`warm_starts.smaller` must be `None`: no family is smaller than {spec.family}.")
        if self.shallower is not None and smaller is not None and self.smaller is None:
            raise ValueError(
                "`warm_starts.shallower` needs `warm_starts.smaller` too: give a model with (family, num_layers) "
                f"= {(smaller.family, smaller.num_layers)}."
            )
        sizes = {
            "shallower": (spec.family, spec.num_layers - 1, spec.num_heads),
            "smaller": smaller and (smaller.family, smaller.num_layers, smaller.num_heads),
            "fewer_heads": (spec.family, spec.num_layers, spec.num_heads - 1),
        }
        for name, size in sizes.items():
            model = getattr(self, name)
            if model is None or size is None:
                continue
            expected = *size, spec.problem.dim, spec.problem.num_examples
            actual = model.family, model.num_layers, model.num_heads, model.dim, model.num_examples
            if actual != expected:
                raise ValueError(
                    f"`warm_starts.{name}` must have (family, num_layers, num_heads, dim, num_examples) = "
                    f"{expected}, got {actual}."
                )


NO_WARM_STARTS = WarmStarts()
"""Random starts only."""


def smaller_spec(spec: ModelSpec) -> ModelSpec | None:
    """The same model of the next smaller family, with one head where heads only add up. `None`: there is none."""
    smaller = FAMILIES[spec.family].smaller
    if smaller is None:
        return None
    heads_add_up = issubclass(FAMILIES[smaller], GDPlusPlus)
    return replace(spec, family=smaller, num_heads=1 if heads_add_up else spec.num_heads)
