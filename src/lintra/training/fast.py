"""The fast recipe: second-order fits grown in depth for GD++ and DIAG, and Adam from there for FULL."""

from dataclasses import dataclass

import jax
from jaxtyping import Array, Key

from lintra.training.growth import DiagonalGrowth, GDPlusPlusGrowth
from lintra.training.recipe import AbstractRecipe, Task
from lintra.training.stage import AbstractStage


@dataclass(frozen=True)
class Fast(AbstractRecipe):
    """Settings of the fast recipe.

    Arguments:
        objective: `bayes`, `truth` or `query`; GD++ is fitted to its exact loss and needs none.
        pool: Sequences that DIAG is fitted on.
        tail: Eigenvalues rarer than this are left out when GD++ is fitted.
    """

    objective: str = "bayes"
    pool: int = 32_768
    tail: float = 1e-9

    def stages(self, task: Task, key: Key[Array, ""]) -> list[AbstractStage]:
        """GD++, then DIAG, then FULL, up to the family that is asked for."""
        keys = jax.random.split(key, 3)
        stages: list[AbstractStage] = [GDPlusPlusGrowth("gd++", keys[0], task, self.tail)]
        if task.variant != "gd++":
            stages.append(DiagonalGrowth("diag", keys[1], task, self.pool, self.objective))
        return stages
