"""What a sweep trains: cells, the cells that each one starts from, and the chains in which they are trained.

A deeper model starts from a shallower one, DIAG knows GD++ of the same depth, FULL knows DIAG, and two heads know
one. So all cells of one noise prior and seed hang together: they are a chain, which is trained in one place.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from lintra._version import __version__
from lintra.evaluation import paper
from lintra.models import families
from lintra.models.spec import Task
from lintra.training.recipes.fast import Fast
from lintra.training.version import TRAINING_VERSION

_COSTS = {"gd++": (1.5, 0.5), "diag": (5.0, 2.2), "full": (22.0, 6.0)}  # seconds, and seconds a layer, about


@dataclass(frozen=True)
class Cell:
    """One model to train.

    Arguments:
        task: What it is.
        seed: Seed of its training; GD++ is fitted without sequences, and grids have one seed of it.
        recipe: How it is trained.

    >>> cell = Cell(Task("full", 3, "uniform(0,5)"), seed=2)
    >>> cell.name, sorted(cell.parents())
    ('full-3-uniform(0,5)-seed2', ['diag', 'shallower'])
    """

    task: Task
    seed: int = 0
    recipe: Fast = field(default_factory=Fast)

    @property
    def name(self) -> str:
        """The task's name and the seed, if it is not 0."""
        return self.task.name + (f"-seed{self.seed}" if self.seed else "")

    @property
    def key(self) -> str:
        """A hash of everything that the result follows from."""
        content = {
            "task": asdict(self.task),
            "seed": self.seed,
            "recipe": self.recipe.settings(),
            "version": __version__,
            "training_version": TRAINING_VERSION,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def cost(self) -> float:
        """How long it takes, about, in seconds."""
        once, layer = _COSTS[self.task.variant]
        return once + layer * self.task.layers * self.task.heads

    def parents(self) -> dict[str, "Cell"]:
        """The cells that this one starts from, by the names by which recipes know them."""
        task, parents = self.task, {}
        if task.layers > 1:
            parents["shallower"] = replace(self, task=replace(task, layers=task.layers - 1))
        if task.variant == "diag":
            parents["gd++"] = Cell(replace(task, variant="gd++", heads=1), 0, self.recipe)
        if task.variant == "full":
            parents["diag"] = replace(self, task=replace(task, variant="diag"))
        if task.heads > 1 and task.variant != "gd++":  # whose heads only add up
            parents["fewer-heads"] = replace(self, task=replace(task, heads=task.heads - 1))
        return parents


Chain = tuple[Cell, ...]
"""Cells that hang together, each after its parents."""


def table1(*, noises: Iterable[str] = paper.NOISES, layers: int = 7, seeds: int = 5) -> list[Chain]:
    """Table 1, and for Figures 5 and 7 eight layers and five seeds at `uniform(0,5)`.

    >>> chains = table1()
    >>> len(chains), sum(len(chain) for chain in chains)
    (14, 277)
    """
    chains = []
    for noise in noises:
        figured = noise == "uniform(0,5)"
        for seed in range(seeds if figured else 1):
            chains.append(chain(noise, layers + (figured and layers == 7), seed=seed))
    return chains


def figure8(*, noises: Iterable[str] = ("uniform(0,5)", "choice(1,3)"), layers: int = 12) -> list[Chain]:
    """Figure 8: GD++, DIAG and FULL with one head, and DIAG with two, up to twelve layers.

    >>> [len(chain) for chain in figure8()]
    [48, 48]
    """
    return [chain(noise, layers) + chain(noise, layers, heads=2, variants=("diag",)) for noise in noises]


def tiny(*, noises: Iterable[str] = ("fixed(1)", "choice(1,3)"), layers: int = 2) -> list[Chain]:
    """A grid that takes seconds, to try a sweep with."""
    recipe, variants = Fast(blocks=4), ("gd++", "diag")
    return [chain(noise, layers, dim=3, context=8, variants=variants, recipe=recipe) for noise in noises]


GRIDS = {"table1": table1, "figure8": figure8, "tiny": tiny}


def chain(
    noise: str,
    layers: int,
    *,
    seed: int = 0,
    heads: int = 1,
    dim: int = 10,
    context: int = 20,
    variants: tuple[str, ...] = families.VARIANTS,
    recipe: Fast | None = None,
) -> Chain:
    """All depths of some families at one noise prior; seeds other than the first leave GD++ to the first."""
    variants = tuple(variant for variant in variants if not seed or variant != "gd++")
    recipe = Fast() if recipe is None else recipe
    return tuple(
        Cell(Task(variant, depth, noise, heads=heads, dim=dim, context=context), seed, recipe)
        for variant in variants
        for depth in range(1, layers + 1)
    )


def shard(chains: list[Chain], number: int, count: int) -> list[Chain]:
    """The chains of one shard of several, so that all have about as much to do.

    >>> [len(shard(table1(), number, 4)) for number in (1, 2, 3, 4)]
    [3, 3, 4, 4]
    """
    if not 1 <= number <= count:
        raise ValueError(f"`shard` must be from 1/N to N/N, got {number}/{count}.")
    if count > len(chains):
        raise ValueError(
            f"`shard` must have at most {len(chains)} parts, since there are {len(chains)} chains and each is "
            f"trained in one place, got {number}/{count}."
        )
    loads, shares = [0.0] * count, [[] for _ in range(count)]
    for heaviest in sorted(chains, key=total_cost, reverse=True):
        least = loads.index(min(loads))
        shares[least].append(heaviest)
        loads[least] += total_cost(heaviest)
    return shares[number - 1]


def total_cost(cells: Iterable[Cell]) -> float:
    """How long these cells take, about, in seconds on one core."""
    return sum(cell.cost for cell in cells)
