"""The last word: of several models the one with the least mean over very many sequences, rare ones included."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.baselines import oracle_weights
from lintra.models import AbstractModel, Diagonal, GDPlusPlus
from lintra.objective import half_square
from lintra.statistics import sample_statistics
from lintra.training.lessons import Lesson, sample_widened
from lintra.training.recipe import Task, stack
from lintra.training.stage import AbstractStage, Models, State

_BLOCK = 8192
_ROUND = 8  # blocks in a piece of work, and one of widened sequences
_RARE = 1e-6  # weight of widened sequences


class Selection(AbstractStage):
    """Chooses among models that stages before have found.

    Sequences on which a model explodes can be too rare for a pool and own its mean all the same. So models are
    compared on half a million fresh sequences and, with a weight of a millionth, on widened ones, which stand
    for what half a million do not show.

    Arguments:
        name: What the chosen model will be called.
        key: Randomness.
        task: What is trained.
        candidates: Names of the models.
        blocks: Number of blocks of 8,192 sequences.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    task: Task = eqx.field(static=True)
    candidates: tuple[str, ...] = eqx.field(static=True)
    blocks: int = eqx.field(static=True, default=64)

    def prepare(self) -> Lesson:
        """Draw widened sequences."""
        key, size = jax.random.fold_in(self.key, self.blocks), 2 * _BLOCK
        return sample_widened(self.task.problem, key, objective="bayes", size=size)

    def start(self, models: Models) -> State:
        """No sequences seen."""
        stacked = stack([_as_family(self.task.variant, models[name]) for name in self.candidates])
        zeros = jnp.zeros(len(self.candidates))
        return {"block": jnp.zeros((), int), "models": stacked, "total": zeros, "rare": zeros}

    def advance(self, state: State, material: Lesson) -> State:
        """Measure all candidates on the same blocks."""
        if int(state["block"]) == 0:
            state = state | {"rare": _distances(state["models"], material.gram, material.target)}
        for _ in range(min(_ROUND, self.blocks - int(state["block"]))):
            losses = _losses(self, state["models"], jax.random.fold_in(self.key, state["block"]))
            state = state | {"block": state["block"] + 1, "total": state["total"] + losses}
        return state

    def progress(self, state: State) -> tuple[int, int]:
        """In blocks."""
        return int(state["block"]), self.blocks

    def metrics(self, state: State) -> dict[str, Any]:
        """Adjusted losses of all candidates."""
        losses = np.asarray(state["total"]) / max(int(state["block"]), 1)
        by_name = dict(zip(self.candidates, losses.tolist(), strict=True))
        rare = dict(zip(self.candidates, np.asarray(state["rare"]).tolist(), strict=True))
        return {"held_out": float(losses[self._best(state)]), "candidates": by_name, "widened": rare}

    def finish(self, state: State) -> AbstractModel:
        """The best candidate."""
        return jax.tree.map(lambda leaf: leaf[self._best(state)], state["models"])

    def _best(self, state: State) -> int:
        return int(np.argmin(state["total"] / max(int(state["block"]), 1) + _RARE * state["rare"]))


@jax.jit
def _losses(stage: Selection, models: AbstractModel, key: Key[Array, ""]) -> Float[Array, " candidates"]:
    problem = stage.task.problem
    stats, truth = sample_statistics(problem, key, (_BLOCK,))
    oracle = oracle_weights(stats, truth.noise_std)
    return _distances(models, stats.gram / problem.context, oracle)


@jax.jit
def _distances(
    models: AbstractModel, gram: Float[Array, "b e e"], target: Float[Array, "b d"]
) -> Float[Array, " candidates"]:
    """Mean distance of every model, infinite where it overflows."""
    losses = jax.vmap(lambda model: half_square(model.final(gram) - target).mean())(models)
    return jnp.where(jnp.isnan(losses), jnp.inf, losses)


def _as_family(variant: str, model: AbstractModel) -> AbstractModel:
    """The same model as a member of a larger family."""
    if variant == "full" and isinstance(model, GDPlusPlus | Diagonal):
        return model.to_full()
    if variant == "diag" and isinstance(model, GDPlusPlus):
        return model.to_diagonal()
    return model
