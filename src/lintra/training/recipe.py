"""What to train, and the interface of the recipes that say how."""

import abc
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import checks
from lintra.models import FAMILIES, AbstractModel, Diagonal, GDPlusPlus
from lintra.noise import parse_noise
from lintra.problem import NoisyRegression
from lintra.training.lessons import OBJECTIVES
from lintra.training.stage import AbstractStage, Models


@dataclass(frozen=True)
class Task:
    """A cell of Table 1, or of a larger table: a family, a depth and a problem.

    Arguments:
        variant: `full`, `diag` or `gd++`.
        layers: Number of layers.
        noise: The noise prior.
        heads: Number of heads.
        dim: Number of inputs.
        context: Number of examples.

    >>> Task("diag", 5, "uniform(0, 5)").name
    'diag-5-uniform(0,5)'
    >>> Task("full", 3, "choice(1,3)", heads=2, dim=5, context=50).name
    'full-3-choice(1,3)-h2-n50-d5'
    """

    variant: str
    layers: int
    noise: str
    heads: int = 1
    dim: int = 10
    context: int = 20

    def __post_init__(self) -> None:
        checks.one_of("variant", self.variant, tuple(FAMILIES))
        for name in ("layers", "heads", "dim", "context"):
            checks.whole_number(name, getattr(self, name))
        object.__setattr__(self, "noise", str(parse_noise(self.noise)))

    @property
    def problem(self) -> NoisyRegression:
        """Where sequences come from."""
        return NoisyRegression(self.dim, self.context, self.noise)

    @property
    def name(self) -> str:
        """The name under which such models are published."""
        heads = f"-h{self.heads}" if self.heads > 1 else ""
        size = f"-n{self.context}-d{self.dim}" if (self.context, self.dim) != (20, 10) else ""
        return f"{self.variant}-{self.layers}-{self.noise}{heads}{size}"


@dataclass(frozen=True)
class AbstractRecipe(abc.ABC):
    """How to train: settings, and the stages that follow from them."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name == "objective":
                checks.one_of(name, value, OBJECTIVES)
            elif name == "dtype":
                checks.one_of(name, value, ("float32", "float64"))
            elif name == "clip" and value is None:
                continue  # no clipping
            elif isinstance(getattr(type(self), name), int):
                checks.whole_number(name, value)
            else:
                checks.positive(name, value)

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


@dataclass(frozen=True)
class RandomStarts:
    """Models with independent normal parameters, one per seed."""

    task: Task
    count: int
    scale: float
    printed: bool = False  # whether the scale is that of P and Q as printed
    unit: float = 1.0  # the scale is for labels divided by this

    def __call__(self, models: Models, key: Key[Array, ""]) -> AbstractModel:
        """Draw them; a start depends on its own number and not on how many there are."""
        task = self.task

        def draw(number: int) -> AbstractModel:
            return FAMILIES[task.variant].random(
                task.layers,
                dim=task.dim,
                context=task.context,
                num_heads=task.heads,
                scale=self.scale,
                key=jax.random.fold_in(key, number),
            )

        drawn = stack([draw(number) for number in range(self.count)])
        drawn = drawn.from_printed_scale() if self.printed else drawn
        return drawn.relabelled(self.unit)


@dataclass(frozen=True)
class Only:
    """One start: a model that a stage before has found."""

    name: str

    def __call__(self, models: Models, key: Key[Array, ""]) -> AbstractModel:
        """The model, stacked."""
        return stack([models[self.name]])


@dataclass(frozen=True)
class RandomAndKnown:
    """Random starts, and besides them models that are known, a little disturbed.

    A shallower model gets a small random layer at its beginning, in its middle and at its end; a smaller
    family's model small random numbers where the larger one has more.
    """

    random: RandomStarts
    known: tuple[str, ...]
    disturbance: float

    def __call__(self, models: Models, key: Key[Array, ""]) -> AbstractModel:
        """Draw them."""
        task = self.random.task
        starts = [self.random(models, key)]
        for number, name in enumerate(self.known):
            noise = replace(self.random, count=3, scale=self.disturbance)(
                models, jax.random.fold_in(key, 2**31 + number)
            )
            model = as_family(task, models[name])
            places = sorted({0, model.num_layers // 2, model.num_layers}) if name == "shallower" else [None]
            padded = stack([_with_gap(model, place) for place in places])
            starts.append(jax.tree.map(lambda at, by: at + by[: at.shape[0]], padded, noise))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *starts)


def as_family(task: Task, model: AbstractModel) -> AbstractModel:
    """The same model as a member of a task's family, which is as large or larger, with as many heads."""
    if task.variant == "full" and isinstance(model, GDPlusPlus | Diagonal):
        model = model.to_full()
    if task.variant == "diag" and isinstance(model, GDPlusPlus):
        model = model.to_diagonal()
    more = task.heads - model.num_heads
    if not more or task.variant == "gd++":
        return model
    shares = head_shares(more + 1) ** 0.5  # P and Q multiply

    def split(leaf: Float[Array, "layers heads ..."]) -> Float[Array, "layers more ..."]:
        first = leaf[:, :1] * shares.reshape(1, -1, *[1] * (leaf.ndim - 2))
        return jnp.concatenate([first, leaf[:, 1:]], axis=1)

    return jax.tree.map(split, model)


def head_shares(heads: int) -> Float[np.ndarray, " heads"]:
    """How heads share the work of one: unevenly, so that they can part, and one in all."""
    shares = 1 + 0.5 * np.cos(np.arange(heads))
    return shares / shares.sum()


def _with_gap(model: AbstractModel, place: int | None) -> AbstractModel:
    """The model with a layer of zeros, which does nothing, at a place."""
    if place is None:
        return model
    return jax.tree.map(lambda leaf: jnp.insert(leaf, place, 0.0, axis=0), model)


def stack(models: list[AbstractModel]) -> AbstractModel:
    """Models of one shape as one, with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)
