"""The fast recipe: second-order fits grown in depth for GD++ and DIAG, and SOAP from random starts for FULL.

GD++ is fitted first, in seconds and without sequences. The other two families contain it, and it is kept in
the choice at the end: without noise nothing that was trained on sequences is as safe on rare ones.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import jax
from jaxtyping import Array, Key

from lintra.models.spec import Task
from lintra.training.descent.stage import Descent
from lintra.training.growth import DiagonalGrowth, GDPlusPlusGrowth
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.selection import Selection
from lintra.training.stage import AbstractStage
from lintra.training.starts import Only, RandomAndKnown, RandomStarts


@dataclass(frozen=True)
class Fast(AbstractRecipe):
    """Settings of the fast recipe.

    Arguments:
        seeds: Random starts of FULL, of which the best after a short run is trained on; three times as many where
            there are up to three layers, which are quick and find the best place more rarely.
        objective: `bayes`, `truth` or `query`; GD++ is fitted to its exact loss and needs none.
        steps: Steps of FULL's long run.
        learning_rate: Rate of FULL's long run.
        pool: Sequences that FULL learns from.
        widened: Wider sequences that come to them, as a share, where there are more than three layers, and in the
            long run where there are three: shallower models have no room for what is rare.
        fit_pool: Sequences that DIAG is fitted to, a multiple of 32,768.
        blocks: Blocks of 8,192 sequences for the last choice, an even number.
        tail: Eigenvalues rarer than this are left out when GD++ is fitted.
    """

    seeds: int = 8
    objective: str = "bayes"
    steps: int = 6000
    learning_rate: float = 2e-2
    pool: int = 393_216
    widened: float = 0.02
    fit_pool: int = 32_768
    blocks: int = 64
    tail: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit_pool % 32_768:
            raise ValueError(f"`fit_pool` must be a multiple of 32,768, got {self.fit_pool}.")
        if self.blocks % 2:
            raise ValueError(f"`blocks` must be an even number, got {self.blocks}.")

    def stages(self, task: Task, key: Key[Array, ""], known: Collection[str] = ()) -> list[AbstractStage]:
        """GD++, the family that is asked for, and a choice between them and what is known."""
        keys = jax.random.split(key, 4)
        stages: list[AbstractStage] = []
        smaller = [name for name in ("gd++", "diag") if name in known]
        if not smaller:
            heads = task.heads if task.variant == "gd++" else 1
            stages.append(GDPlusPlusGrowth("gd++", keys[0], replace(task, heads=heads), tail=self.tail))
        if task.variant == "gd++":
            return stages
        if task.variant == "diag":
            stages.append(DiagonalGrowth("diag", keys[1], task, pool=self.fit_pool, objective=self.objective))
        else:
            stages += self._full(
                task, keys[1], keys[2], tuple(name for name in ("shallower", "diag") if name in known)
            )
        others = [name for name in ("fewer-heads", "shallower") if name in known]
        candidates = task.variant, *(smaller or ("gd++",)), *others
        return [*stages, Selection("chosen", keys[3], task, candidates, self.blocks)]

    def unused(self, task: Task) -> frozenset[str]:
        """What only FULL needs, and for GD++ what only sequences need."""
        full = {"seeds", "steps", "learning_rate", "pool", "widened"}
        sequences = {"objective", "fit_pool", "blocks"}
        return frozenset({"full": set[str](), "diag": full, "gd++": full | sequences}[task.variant])

    def _full(
        self, task: Task, short_key: Key[Array, ""], long_key: Key[Array, ""], known: tuple[str, ...]
    ) -> list[AbstractStage]:
        """Short runs from many starts, and a long one from the best of them."""
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
        count = self.seeds if task.layers > 3 else 3 * self.seeds
        starts = RandomAndKnown(RandomStarts(task, count, scale=0.1, unit=unit), known, disturbance=0.02)
        shares = [self.widened if task.layers > least else 0.0 for least in (3, 2)]
        pools = self.pool // 6, self.pool
        sizes = [{"pool": pool, "widened": round(share * pool)} for pool, share in zip(pools, shares, strict=True)]
        return [
            Descent("start", short_key, starts=starts, **sizes[0], **short, **shared),
            Descent("full", long_key, starts=Only("start"), **sizes[1], **long, **shared),
        ]
