"""The fast recipe: second-order fits grown in depth for GD++ and DIAG, and SOAP from random starts for FULL.

GD++ is fitted first, in seconds and without sequences. The other two families contain it, and it is kept in
the choice at the end: without noise nothing that was trained on sequences is as safe on rare ones.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Key

from lintra.training.descent import Descent
from lintra.training.growth import DiagonalGrowth, GDPlusPlusGrowth
from lintra.training.recipe import AbstractRecipe, Only, RandomStarts, Task
from lintra.training.selection import Selection
from lintra.training.stage import AbstractStage


@dataclass(frozen=True)
class Fast(AbstractRecipe):
    """Settings of the fast recipe.

    Arguments:
        seeds: Random starts of FULL, of which the best after a short run is trained on.
        objective: `bayes`, `truth` or `query`; GD++ is fitted to its exact loss and needs none.
        steps: Steps of FULL's long run.
        learning_rate: Rate of FULL's long run.
        pool: Sequences that FULL learns from; a tenth as many wider ones come to them.
        fit_pool: Sequences that DIAG is fitted to, a multiple of 32,768.
        tail: Eigenvalues rarer than this are left out when GD++ is fitted.
    """

    seeds: int = 8
    objective: str = "bayes"
    steps: int = 6000
    learning_rate: float = 2e-2
    pool: int = 393_216
    fit_pool: int = 32_768
    tail: float = 1e-9

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit_pool % 32_768:
            raise ValueError(f"`fit_pool` must be a multiple of 32,768, got {self.fit_pool}.")

    def stages(self, task: Task, key: Key[Array, ""]) -> list[AbstractStage]:
        """GD++, the family that is asked for, and a choice between the two."""
        keys = jax.random.split(key, 4)
        spectral = GDPlusPlusGrowth("gd++", keys[0], task, self.tail)
        if task.variant == "gd++":
            return [spectral]
        trained: list[AbstractStage] = [DiagonalGrowth("diag", keys[1], task, self.fit_pool, self.objective)]
        if task.variant == "full":
            trained = self._full(task, keys[1], keys[2])
        return [spectral, *trained, Selection("chosen", keys[3], task, ("gd++", task.variant))]

    def _full(self, task: Task, short_key: Key[Array, ""], long_key: Key[Array, ""]) -> list[AbstractStage]:
        """Short runs from random starts, and a long one from the best of them."""
        unit = (task.dim + task.problem.noise.second_moment) ** 0.5  # of a label
        shared: dict[str, Any] = {
            "problem": task.problem,
            "objective": self.objective,
            "optimiser": "soap",
            "unit": unit,
            "clip": 0.25,
            "limit": 0.01,
            "spike": math.inf,
        }
        short: dict[str, Any] = {"steps": 1600, "learning_rate": 3e-2, "warm_up": 200, "batch": 256}
        long: dict[str, Any] = {
            "steps": self.steps,
            "learning_rate": self.learning_rate,
            "warm_up": 50,
            "batch": 1024,
        }
        starts = RandomStarts(task, self.seeds, scale=0.1, unit=unit)
        few = self.pool // 6
        return [
            Descent("start", short_key, starts=starts, pool=few, widened=few // 10, **short, **shared),
            Descent(
                "full", long_key, starts=Only("start"), pool=self.pool, widened=self.pool // 10, **long, **shared
            ),
        ]
