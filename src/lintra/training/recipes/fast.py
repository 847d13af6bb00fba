"""The fast recipe: second-order fits grown in depth for GD++ and DIAG, and SOAP from random starts for FULL.

GD++ is fitted first, in seconds and without sequences, wherever the family contains it. It is then one of the
candidates of the model selection: without noise no model that was trained on sequences is as safe on rare ones.
A family without a stage of its own is trained as FULL is.
"""

import math
from dataclasses import dataclass, replace

import jax
from jaxtyping import Array, Key

from lintra import arguments
from lintra.models.diagonal import Diagonal
from lintra.models.families import FAMILIES
from lintra.models.gdpp import GDPlusPlus
from lintra.models.spec import ModelSpec
from lintra.training.batch import OBJECTIVES
from lintra.training.descent.batch_source import BatchSource
from lintra.training.descent.descent import Descent
from lintra.training.descent.schedule import Schedule
from lintra.training.descent.step import GradientGuard
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.selection import Selection
from lintra.training.stage import AbstractStage
from lintra.training.starts import FromStage, RandomAndWarmStarts, RandomStarts
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts

_ONLY_DESCENT = frozenset({"num_starts", "num_steps", "learning_rate", "pool_size", "widened_share"})
_UNUSED = {
    GDPlusPlus.family: _ONLY_DESCENT | {"objective", "fit_pool_size", "num_blocks"},
    Diagonal.family: _ONLY_DESCENT,
}


@dataclass(frozen=True)
class Fast(AbstractRecipe):
    """The fast recipe.

    Args:
        num_starts: Number of random starts of FULL, of which the best after a short run is trained further. Three
            times as many are used with up to three layers, which are quick and find the best optimum more rarely.
            Default: 8.
        objective: `bayes` (default), `truth` or `query`. GD++ is fitted to its exact loss and needs none.
        num_steps: Number of steps of FULL's long run. Default: 6,000.
        learning_rate: Learning rate of FULL's long run. Default: 0.02.
        pool_size: Number of sequences that FULL learns from. Default: 393,216.
        widened_share: Number of wider sequences that are added to them, as a fraction. They are used with more
            than three layers, and in the long run with three: shallower models have no capacity for rare
            sequences.
            Default: 0.02.
        fit_pool_size: Number of sequences that DIAG is fitted to, a multiple of 32,768. Default: 32,768.
        num_blocks: Number of blocks of 8,192 sequences for model selection, an even number. Default: 64.
        min_mass: Eigenvalues with a smaller weight are left out when GD++ is fitted. Default: 1e-8.
    """

    num_starts: int = 8
    objective: str = "bayes"
    num_steps: int = 6000
    learning_rate: float = 2e-2
    pool_size: int = 393_216
    widened_share: float = 0.02
    fit_pool_size: int = 32_768
    num_blocks: int = 64
    min_mass: float = 1e-8

    def __post_init__(self) -> None:
        for name in ("num_starts", "num_steps", "pool_size", "fit_pool_size", "num_blocks"):
            arguments.whole_number(name, getattr(self, name))
        for name in ("learning_rate", "widened_share", "min_mass"):
            arguments.positive(name, getattr(self, name))
        arguments.one_of("objective", self.objective, OBJECTIVES)
        if self.fit_pool_size % 32_768:
            raise ValueError(f"`fit_pool_size` must be a multiple of 32,768, got {self.fit_pool_size}.")
        if self.num_blocks % 2:
            raise ValueError(f"`num_blocks` must be an even number, got {self.num_blocks}.")

    def stages(
        self, spec: ModelSpec, key: Key[Array, ""], warm_starts: WarmStarts = NO_WARM_STARTS
    ) -> list[AbstractStage]:
        """GD++, the family of the model, and a selection among them and the warm starts."""
        gdpp_key, first_key, second_key, selection_key = jax.random.split(key, 4)
        gdpp = GDPlusPlusGrowth(GDPlusPlus.family, gdpp_key, spec, min_mass=self.min_mass)
        if spec.family == GDPlusPlus.family:
            return [gdpp]
        simpler: list[AbstractStage] = []
        if warm_starts.smaller is None and _contains(spec.family, GDPlusPlus.family):
            simpler.append(replace(gdpp, spec=replace(spec, num_heads=1)))
        names = tuple(stage.name for stage in simpler)
        if spec.family == Diagonal.family:
            settings = {"pool_size": self.fit_pool_size, "objective": self.objective}
            trained: list[AbstractStage] = [
                DiagonalGrowth(spec.family, first_key, spec, from_stages=names, **settings)
            ]
        else:
            trained = self._descents(spec, first_key, second_key)
        selection = Selection("selected", selection_key, spec, (spec.family, *names), self.num_blocks)
        return [*simpler, *trained, selection]

    def unused(self, spec: ModelSpec) -> frozenset[str]:
        """Settings of gradient descent for GD++ and DIAG, and settings of sequences for GD++."""
        return _UNUSED.get(spec.family, frozenset())

    def _descents(
        self, spec: ModelSpec, short_key: Key[Array, ""], long_key: Key[Array, ""]
    ) -> list[AbstractStage]:
        """Short runs from many starts, and a long one from the best of them."""
        # Labels divided by their standard deviation √(d + E[σ²]), so that all parameters are near one.
        label_scale = (spec.problem.dim + spec.problem.noise.second_moment) ** 0.5
        source = BatchSource(spec.problem, objective=self.objective, label_scale=label_scale)

        def sized(batch_size: int, pool_size: int, *, min_depth: int) -> BatchSource:
            share = self.widened_share if spec.num_layers >= min_depth else 0.0
            num_widened = round(share * pool_size)
            return replace(source, batch_size=batch_size, pool_size=pool_size, num_widened=num_widened)

        num_starts = self.num_starts if spec.num_layers > 3 else 3 * self.num_starts
        random = RandomStarts(spec, num_starts, scale=0.1, label_scale=label_scale)
        short = Descent(
            "start",
            short_key,
            sized(256, self.pool_size // 6, min_depth=4),
            starts=RandomAndWarmStarts(random, perturbation=0.02),
            num_steps=1600,
            schedule=Schedule(3e-2, warmup_steps=200),
            optimiser="soap" if _has_square_parameters(spec, short_key) else "adam",
            guard=GradientGuard(clip_norm=0.25, max_norm=0.01, max_ratio=math.inf),
        )
        long = replace(
            short,
            name=spec.family,
            key=long_key,
            source=sized(1024, self.pool_size, min_depth=3),
            starts=FromStage("start"),
            num_steps=self.num_steps,
            schedule=Schedule(self.learning_rate, warmup_steps=50),
        )
        return [short, long]


def _contains(family: str, other: str) -> bool:
    """Whether the models of another family are models of this one."""
    name: str | None = family
    while name is not None and name != other:
        name = FAMILIES[name].smaller
    return name == other


def _has_square_parameters(spec: ModelSpec, key: Key[Array, ""]) -> bool:
    """Whether all parameters are square matrices, as SOAP needs: shape (layers, heads, e, e)."""
    model = jax.eval_shape(
        lambda key: FAMILIES[spec.family].random(
            spec.num_layers, dim=spec.problem.dim, num_examples=spec.problem.num_examples, key=key
        ),
        key,
    )
    return all(leaf.ndim == 4 and leaf.shape[-1] == leaf.shape[-2] for leaf in jax.tree.leaves(model))
