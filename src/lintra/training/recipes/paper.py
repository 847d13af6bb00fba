"""The paper's recipe, §6: Adam at rate 1e-4, batches of 2,048 fresh sequences, 200,000 steps, best of five seeds.

The rate is that of P and Q as printed, on unscaled tokens. What the paper leaves open is a setting here:
the initial scale; the slope in the implicit weights is clipped per sequence; the rate is lowered once; and
where the paper "had to adjust the learning rate to prevent stability issues", bad steps are refused and the
rate is halved for a while (see `descent`). A model is never sent back to an earlier one.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

from jaxtyping import Array, Key

from lintra.models.spec import Task
from lintra.training.descent.stage import Descent
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.stage import AbstractStage
from lintra.training.starts import RandomStarts


@dataclass(frozen=True)
class Paper(AbstractRecipe):
    """Settings of the paper's recipe.

    Arguments:
        seeds: Number of seeds, of which the best on held-out sequences is kept.
        objective: `query` is the paper's; `truth` and `bayes` have the same minimiser and less noise.
        steps: Number of steps.
        learning_rate: Adam's rate.
        lowered: The share of the steps after which the rate is a tenth.
        batch: Sequences in a step.
        scale: Standard deviation of the initial P and Q, as printed.
        clip: Longest slope in the implicit weights, per sequence; nothing for no limit.
        dtype: Precision.
    """

    seeds: int = 5
    objective: str = "query"
    steps: int = 200_000
    learning_rate: float = 1e-4
    lowered: float = 0.8
    batch: int = 2048
    scale: float = 0.005
    clip: float | None = 10.0
    dtype: str = "float32"

    def stages(self, task: Task, key: Key[Array, ""], known: Collection[str] = ()) -> list[AbstractStage]:
        """One stage of Adam, which starts from random models whatever is known."""
        return [
            Descent(
                name=task.variant,
                key=key,
                problem=task.problem,
                starts=RandomStarts(task, self.seeds, self.scale, printed=True),
                steps=self.steps,
                learning_rate=self.learning_rate,
                printed=True,
                lowered=self.lowered,
                astray=math.inf,
                batch=self.batch,
                objective=self.objective,
                clip=self.clip,
                dtype=self.dtype,
                round=1000,
            )
        ]
