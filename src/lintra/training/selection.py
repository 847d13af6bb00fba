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
from lintra.training.lessons import BLOCK, stretched
from lintra.training.recipe import Task, stack
from lintra.training.stage import AbstractStage, Models, State

_SCALES = (1.0, 1.1)  # of the inputs, in turn


class Selection(AbstractStage):
    """Chooses among models that stages before have found.

    Sequences on which a model explodes can be too rare for a pool and own its mean all the same. So the mean
    is estimated twice: from sequences as they are, and by importance sampling from sequences whose inputs
    are 1.1 times as long, each with the ratio of its densities as its weight. The longer inputs see
    explosions that hundreds of thousands of plain sequences do not. A model is as good as the worse estimate.
    (At 1.2 one sees events of probability below 1e-60, where every deep model explodes.)

    Arguments:
        name: What the chosen model will be called.
        key: Randomness.
        task: What is trained.
        candidates: Names of the models.
        blocks: Number of blocks of 8,192 sequences, an even number.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    task: Task = eqx.field(static=True)
    candidates: tuple[str, ...] = eqx.field(static=True)
    blocks: int = eqx.field(static=True, default=64)

    def prepare(self) -> None:
        """Nothing."""

    def start(self, models: Models) -> State:
        """No sequences seen."""
        stacked = stack([_as_family(self.task.variant, models[name]) for name in self.candidates])
        total = jnp.zeros((len(_SCALES), len(self.candidates)))
        return {"block": jnp.zeros((), int), "models": stacked, "total": total}

    def advance(self, state: State, material: None) -> State:
        """Measure all candidates on the same blocks, one of every scale."""
        for row, scale in enumerate(_SCALES):
            key = jax.random.fold_in(self.key, state["block"])
            losses = _losses(self, state["models"], key, jnp.asarray(scale))
            state = state | {"block": state["block"] + 1, "total": state["total"].at[row].add(losses)}
        return state

    def progress(self, state: State) -> tuple[int, int]:
        """In blocks."""
        return int(state["block"]), self.blocks

    def metrics(self, state: State) -> dict[str, Any]:
        """Adjusted losses of all candidates, and their estimates from longer inputs."""
        means = self._means(state)
        by_name = {name: means[:, column].tolist() for column, name in enumerate(self.candidates)}
        return {"held_out": float(means[0, self._best(state)]), "candidates": by_name}

    def finish(self, state: State) -> AbstractModel:
        """The best candidate."""
        return jax.tree.map(lambda leaf: leaf[self._best(state)], state["models"])

    def _means(self, state: State) -> Float[np.ndarray, "scales candidates"]:
        return np.asarray(state["total"]) * len(_SCALES) / max(int(state["block"]), 1)

    def _best(self, state: State) -> int:
        return int(np.argmin(self._means(state).max(axis=0)))


@jax.jit
def _losses(
    stage: Selection, models: AbstractModel, key: Key[Array, ""], scale: Float[Array, ""]
) -> Float[Array, " candidates"]:
    """Mean adjusted loss by importance sampling: inputs `scale · x` have the density ratio as their weight."""
    problem = stage.task.problem
    stats, truth = sample_statistics(problem, key, (BLOCK,))
    trace = jnp.trace(stats.xx, axis1=-2, axis2=-1)
    log_weight = problem.context * problem.dim * jnp.log(scale) - 0.5 * (scale**2 - 1) * trace
    ones, inputs = jnp.ones((BLOCK, 1)), scale * jnp.eye(problem.dim)[None]
    stats = stretched(stats, truth, inputs, ones, ones)
    oracle = oracle_weights(stats, truth.noise_std)

    def mean(model: AbstractModel) -> Float[Array, ""]:
        losses = half_square(model.final(stats.gram / problem.context) - oracle)
        return jnp.mean(jnp.where(jnp.isnan(losses), jnp.inf, losses) * jnp.exp(log_weight))

    return jax.vmap(mean)(models)


def _as_family(variant: str, model: AbstractModel) -> AbstractModel:
    """The same model as a member of a larger family."""
    if variant == "full" and isinstance(model, GDPlusPlus | Diagonal):
        return model.to_full()
    if variant == "diag" and isinstance(model, GDPlusPlus):
        return model.to_diagonal()
    return model
