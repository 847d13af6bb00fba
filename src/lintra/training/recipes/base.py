"""The interface of a recipe: settings, and the stages that follow from them."""

import abc
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from jaxtyping import Array, Key

from lintra.models.spec import ModelSpec
from lintra.training.stage import AbstractStage
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts


@dataclass(frozen=True)
class AbstractRecipe(abc.ABC):
    """How to train. A recipe is a frozen dataclass of settings, which it validates in `__post_init__`.

    Attributes:
        uses_warm_starts: Whether its stages use warm starts. If not, the cells of a sweep do not depend on each
            other.
    """

    uses_warm_starts: ClassVar[bool] = True

    @abc.abstractmethod
    def stages(
        self, spec: ModelSpec, key: Key[Array, ""], warm_starts: WarmStarts = NO_WARM_STARTS
    ) -> list[AbstractStage]:
        """The stages in order. The model of the last one is the trained model.

        Args:
            spec: The model to train.
            key: Randomness.
            warm_starts: Models that the stages will be given. A recipe may leave out stages that they replace.
        """

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return asdict(self)

    def unused(self, spec: ModelSpec) -> frozenset[str]:
        """Names of settings that have no effect on this model."""
        return frozenset()
