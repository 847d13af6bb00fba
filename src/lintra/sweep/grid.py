"""Grids of models: cells, the cells that each one starts from, and chains of cells.

A model starts from the one with a layer less, from the one of the next smaller family and from the one with a head
less. So all cells of one noise prior and seed depend on each other: they are a chain, which is trained in one
place. With a recipe that uses no warm starts, such as the paper's, every cell is a chain of its own.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from lintra._version import __version__
from lintra.evaluation import paper
from lintra.models import families
from lintra.models.gdpp import GDPlusPlus
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.recipes.paper import Paper
from lintra.training.version import TRAINING_VERSION
from lintra.training.warm_starts import smaller_spec

_COSTS = {"gd++": (1.5, 0.5), "diag": (5.0, 2.2)}  # approximate seconds, and seconds per layer and head
_DESCENT_COST = (22.0, 6.0)  # of families that are trained by gradient descent
_STEP_COST = 3e-3, 4e-4  # of the paper's recipe: seconds for the sequences, and per start, layer and head
_ONE_SEED = ("gd++",)  # families that are fitted without sequences, of which grids have one seed


@dataclass(frozen=True)
class Cell:
    """One model to train.

    Args:
        spec: The model.
        seed: Number of the random key of its training. Default: 0.
        recipe: How it is trained. Default: `Fast()`.

    >>> cell = Cell(ModelSpec("full", 3, "uniform(0,5)"), seed=2)
    >>> cell.name, sorted(cell.parents())
    ('full-3-uniform(0,5)-seed2', ['shallower', 'smaller'])
    """

    spec: ModelSpec
    seed: int = 0
    recipe: AbstractRecipe = field(default_factory=Fast)

    @property
    def name(self) -> str:
        """The model's name, and the seed if it is not 0."""
        return self.spec.name + (f"-seed{self.seed}" if self.seed else "")

    @property
    def digest(self) -> str:
        """A hash of everything that the result depends on."""
        return hashlib.sha256(json.dumps(self.content(), sort_keys=True).encode()).hexdigest()[:16]

    def content(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain values."""
        return {
            "spec": self.spec.settings(),
            "seed": self.seed,
            "recipe": self.recipe.settings(),
            "version": __version__,
            "training_version": TRAINING_VERSION,
        }

    @property
    def cost(self) -> float:
        """Approximate duration of its training, in seconds."""
        size = self.spec.num_layers * self.spec.num_heads
        if isinstance(self.recipe, Paper):
            once, layer = _STEP_COST
            return self.recipe.num_steps * (once + layer * size * self.recipe.num_starts)
        once, layer = _COSTS.get(self.spec.family, _DESCENT_COST)
        return once + layer * size

    def parents(self) -> dict[str, "Cell"]:
        """The cells that this one starts from, by the fields of `WarmStarts`."""
        spec, parents = self.spec, {}
        if not self.recipe.uses_warm_starts:
            return parents
        if spec.num_layers > 1:
            parents["shallower"] = replace(self, spec=replace(spec, num_layers=spec.num_layers - 1))
        if (smaller := smaller_spec(spec)) is not None:
            seed = 0 if smaller.family in _ONE_SEED else self.seed
            parents["smaller"] = replace(self, spec=smaller, seed=seed)
        if spec.num_heads > 1 and spec.family != GDPlusPlus.family:  # whose heads only add up
            parents["fewer_heads"] = replace(self, spec=replace(spec, num_heads=spec.num_heads - 1))
        return parents


Chain = tuple[Cell, ...]
"""Cells that depend on each other, each after its parents."""


def table1(
    *,
    noises: Iterable[str] = paper.NOISES,
    num_layers: int = 7,
    num_seeds: int = 5,
    recipe: AbstractRecipe | None = None,
) -> list[Chain]:
    """Table 1, and for Figures 5 and 7 eight layers and five seeds at `uniform(0,5)`.

    The paper's recipe has five starts itself, so that its cells have one seed.

    >>> chains = table1()
    >>> len(chains), sum(len(chain) for chain in chains)
    (14, 277)
    >>> chains = table1(recipe=Paper())
    >>> len(chains), sum(len(chain) for chain in chains)
    (213, 213)
    """
    chains = []
    num_seeds = 1 if isinstance(recipe, Paper) else num_seeds
    for noise in noises:
        in_figures = noise == "uniform(0,5)"
        depth = num_layers + 1 if in_figures and num_layers == 7 else num_layers
        seeds = range(num_seeds if in_figures else 1)
        chains += [chain(noise, depth, seed=seed, recipe=recipe) for seed in seeds]
    return _independent(chains)


def figure8(
    *,
    noises: Iterable[str] = ("uniform(0,5)", "choice(1,3)"),
    num_layers: int = 12,
    recipe: AbstractRecipe | None = None,
) -> list[Chain]:
    """Figure 8: GD++, DIAG and FULL with one head, and DIAG with two, up to twelve layers.

    >>> [len(chain) for chain in figure8()]
    [48, 48]
    """
    two_heads: dict[str, Any] = {"num_heads": 2, "families": ("diag",), "recipe": recipe}
    return _independent(
        [chain(noise, num_layers, recipe=recipe) + chain(noise, num_layers, **two_heads) for noise in noises]
    )


def tiny(
    *,
    noises: Iterable[str] = ("fixed(1)", "choice(1,3)"),
    num_layers: int = 2,
    recipe: AbstractRecipe | None = None,
) -> list[Chain]:
    """A small grid, which is trained in seconds."""
    settings: dict[str, Any] = {"families": ("gd++", "diag"), "recipe": recipe or Fast(num_blocks=4)}
    return _independent([chain(NoisyRegression(3, 8, noise), num_layers, **settings) for noise in noises])


GRIDS = {"table1": table1, "figure8": figure8, "tiny": tiny}


def chain(
    problem: NoisyRegression | str,
    num_layers: int,
    *,
    seed: int = 0,
    num_heads: int = 1,
    families: tuple[str, ...] = families.PAPER_FAMILIES,
    recipe: AbstractRecipe | None = None,
) -> Chain:
    """All depths of some families for one problem. Only the chain of seed 0 has GD++, which the others share."""
    families = tuple(family for family in families if not seed or family not in _ONE_SEED)
    recipe = Fast() if recipe is None else recipe
    return tuple(
        Cell(ModelSpec(family, depth, problem, num_heads), seed, recipe)
        for family in families
        for depth in range(1, num_layers + 1)
    )


def _independent(chains: list[Chain]) -> list[Chain]:
    """The same chains, those of a recipe without warm starts cell by cell."""
    parts = [[cells] if cells[0].recipe.uses_warm_starts else [(cell,) for cell in cells] for cells in chains]
    return [cells for part in parts for cells in part]


def shard(chains: list[Chain], number: int, num_shards: int) -> list[Chain]:
    """The chains of one of several shards of about the same duration.

    >>> [len(shard(table1(), number, 4)) for number in (1, 2, 3, 4)]
    [3, 3, 4, 4]
    """
    if not 1 <= number <= num_shards:
        raise ValueError(f"`shard` must be from 1/N to N/N, got {number}/{num_shards}.")
    if num_shards > len(chains):
        raise ValueError(
            f"`shard` must have at most {len(chains)} parts, since there are {len(chains)} chains and each is "
            f"trained in one place, got {number}/{num_shards}."
        )
    costs, shards = [0.0] * num_shards, [[] for _ in range(num_shards)]
    for chain in sorted(chains, key=total_cost, reverse=True):
        cheapest = costs.index(min(costs))
        shards[cheapest].append(chain)
        costs[cheapest] += total_cost(chain)
    return shards[number - 1]


def total_cost(cells: Iterable[Cell]) -> float:
    """Approximate duration of their training, in seconds on one core."""
    return sum(cell.cost for cell in cells)
