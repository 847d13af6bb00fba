"""What recipes share: settings, and the stages that follow from them."""

import abc
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Array, Key

from lintra import arguments
from lintra.models.spec import Task
from lintra.training.batch import OBJECTIVES
from lintra.training.stage import AbstractStage


@dataclass(frozen=True)
class AbstractRecipe(abc.ABC):
    """How to train: settings, and the stages that follow from them."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name == "objective":
                arguments.one_of(name, value, OBJECTIVES)
            elif name == "dtype":
                arguments.one_of(name, value, ("float32", "float64"))
            elif name == "clip" and value is None:
                continue  # no clipping
            elif isinstance(getattr(type(self), name), int):
                arguments.whole_number(name, value)
            else:
                arguments.positive(name, value)

    @abc.abstractmethod
    def stages(self, task: Task, key: Key[Array, ""], known: Collection[str] = ()) -> list[AbstractStage]:
        """The stages, of which the last one leaves the trained model behind.

        Models of these names are `known` from other tasks: `shallower` is of the same family with one layer
        less, `gd++` and `diag` are smaller families with as many layers, and `fewer-heads` has one head less.
        A recipe may start from them.
        """

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return asdict(self)

    def unused(self, task: Task) -> frozenset[str]:
        """Settings that have no meaning for this task."""
        return frozenset()
