"""The paper's recipe, §6: Adam at rate 1e-4, batches of 2,048 fresh sequences, 200,000 steps, best of five starts.

The rate is that of P and Q as printed, on unscaled tokens. Where the paper gives no value there is a setting: the
initial scale, the clipping of gradients per sequence, and when the rate is lowered. The paper "had to adjust the
learning rate to prevent stability issues"; here steps that are not finite are rejected and the rate is halved for
a while (see `lintra.training.descent`). A model never returns to an earlier one.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Array, Key

from lintra import arguments
from lintra.models.spec import ModelSpec
from lintra.training.batch import OBJECTIVES
from lintra.training.descent.batch_source import BatchSource
from lintra.training.descent.descent import Descent
from lintra.training.descent.rollback import Rollback
from lintra.training.descent.schedule import Schedule
from lintra.training.descent.step import GradientGuard
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.stage import AbstractStage
from lintra.training.starts import RandomStarts
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts


@dataclass(frozen=True)
class Paper(AbstractRecipe):
    """The paper's recipe.

    Args:
        num_starts: Number of random starts. The best on validation sequences is kept. Default: 5.
        objective: `query` (default) is the paper's; `truth` and `bayes` have the same minimiser and less noise.
        num_steps: Number of steps. Default: 200,000.
        learning_rate: Adam's learning rate. Default: 1e-4.
        decay_after: Fraction of the steps after which the rate is a tenth. Default: 0.8.
        batch_size: Number of sequences in a step. Default: 2,048.
        scale: Standard deviation of the initial P and Q, as printed. Default: 0.005.
        clip_norm: Largest norm of a sequence's gradient with respect to the weights. `None`: not clipped.
            Default: 10.
        dtype: Precision, `float32` (default) or `float64`.
    """

    uses_warm_starts: ClassVar[bool] = False
    num_starts: int = 5
    objective: str = "query"
    num_steps: int = 200_000
    learning_rate: float = 1e-4
    decay_after: float = 0.8
    batch_size: int = 2048
    scale: float = 0.005
    clip_norm: float | None = 10.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("num_starts", "num_steps", "batch_size"):
            arguments.whole_number(name, getattr(self, name))
        for name in ("learning_rate", "decay_after", "scale"):
            arguments.positive(name, getattr(self, name))
        arguments.one_of("objective", self.objective, OBJECTIVES)
        arguments.one_of("dtype", self.dtype, ("float32", "float64"))
        if self.clip_norm is not None:
            arguments.positive("clip_norm", self.clip_norm)

    def stages(
        self, spec: ModelSpec, key: Key[Array, ""], warm_starts: WarmStarts = NO_WARM_STARTS
    ) -> list[AbstractStage]:
        """One stage of Adam from random starts. Warm starts are not used."""
        return [
            Descent(
                name=spec.family,
                key=key,
                source=BatchSource(
                    spec.problem, objective=self.objective, batch_size=self.batch_size, dtype=self.dtype
                ),
                starts=RandomStarts(spec, self.num_starts, self.scale, printed_scale=True),
                num_steps=self.num_steps,
                schedule=Schedule(self.learning_rate, decay_after=self.decay_after),
                printed_scale=True,
                guard=GradientGuard(clip_norm=self.clip_norm),
                rollback=Rollback(math.inf),
                validate_every=1000,
            )
        ]
