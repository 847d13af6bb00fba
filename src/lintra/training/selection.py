"""The last word: of several models the one with the least mean over very many sequences, rare ones included."""

from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.baselines.oracle import oracle_weights
from lintra.models.base import AbstractModel
from lintra.models.families import pad_layers, stack, to_family
from lintra.models.spec import Task
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics
from lintra.training.sampling import BLOCK, LONGER, stretched
from lintra.training.stage import AbstractStage, Models, State, token

_SCALES = (1.0, LONGER)  # of the inputs, in turn
_MEMORY = 2**30  # bytes that blocks may take to be kept
_RARE = 1e-7  # probability of the worst sequences, which do not count
_WORST = 256  # sequences of which one knows how bad they are
_TIE = 1e-4  # by how much, as a share, what was trained must be better than what is simpler

Weighed = tuple[Float[Array, "b e e"], Float[Array, "b d"], Float[Array, " b"]]
"""Gram matrices divided by the context length, the oracle's weights, and importance weights."""


class Selection(AbstractStage):
    """Chooses among models that stages before have found.

    Sequences on which a model explodes can be too rare for a pool and own its mean all the same. So the mean
    is estimated twice: from sequences as they are, and by importance sampling from sequences whose inputs
    are 1.1 times as long, each with the ratio of its densities as its weight. The longer inputs see
    explosions that hundreds of thousands of plain sequences do not. What is rarer still is left out: every
    deep model explodes somewhere, and of the worst sequences those with a probability of 1e-7 in all do not
    count. A model is as good as the worse estimate, and what was trained must be better than what was there
    before by more than these sequences can tell.

    Arguments:
        name: What the chosen model will be called.
        key: Randomness.
        task: What is trained.
        candidates: Names of the models: the first is the one that was trained, the others are simpler ones.
        blocks: Number of blocks of 8,192 sequences, an even number.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    task: Task = eqx.field(static=True)
    candidates: tuple[str, ...] = eqx.field(static=True)
    blocks: int = eqx.field(static=True, default=64)

    @property
    def material(self) -> Hashable:
        """The problem, the key and the number of blocks."""
        return "selection", token(self.task.problem, self.key), self.blocks

    def prepare(self) -> list[Weighed] | None:
        """Draw all blocks, of every scale in turn, if they fit into memory."""
        fits = self.blocks * BLOCK * (self.task.dim + 1) ** 2 * 8 < _MEMORY
        return [self._block(number) for number in range(self.blocks)] if fits else None

    def _block(self, number: int) -> Weighed:
        return _sample(self.task.problem, jax.random.fold_in(self.key, number), _SCALES[number % len(_SCALES)])

    def start(self, models: Models) -> State:
        """No sequences seen."""
        layers = max(models[name].num_layers for name in self.candidates)
        candidates = [
            pad_layers(to_family(models[name], self.task.variant, self.task.heads), layers)
            for name in self.candidates
        ]
        shape = len(_SCALES), len(self.candidates)
        nothing = jnp.zeros((*shape, _WORST))
        return {
            "block": jnp.zeros((), int),
            "models": stack(candidates),
            "total": jnp.zeros(shape),
            "worst": nothing - 1.0,
            "weight": nothing,
        }

    def advance(self, state: State, material: list[Weighed] | None) -> State:
        """Measure all candidates on the same blocks, one of every scale."""
        first = int(state["block"])
        numbers = range(first, first + len(_SCALES))
        blocks = [self._block(number) if material is None else material[number] for number in numbers]
        total, worst, weight = state["total"], state["worst"], state["weight"]
        seen = [_see(state["models"], total[i], worst[i], weight[i], *block) for i, block in enumerate(blocks)]
        total, worst, weight = (jnp.stack(parts) for parts in zip(*seen, strict=True))
        block = state["block"] + len(_SCALES)
        return state | {"block": block, "total": total, "worst": worst, "weight": weight}

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
        """Means without the rarest of the worst, which are in order."""
        sequences = max(int(state["block"]), 1) / len(_SCALES) * BLOCK
        worst, weight = np.asarray(state["worst"]), np.asarray(state["weight"])
        counts = np.cumsum(weight, axis=-1) / sequences > _RARE
        with np.errstate(invalid="ignore"):  # an infinite loss of no weight at all does not count
            counted = np.sum(weight * worst, axis=-1, where=counts)
        return (np.asarray(state["total"]) + counted) / sequences

    def _best(self, state: State) -> int:
        handicap = np.ones(len(self.candidates))
        handicap[0] += _TIE
        return int(np.argmin(self._means(state).max(axis=0) * handicap))


@jax.jit
def _sample(problem: NoisyRegression, key: Key[Array, ""], scale: float) -> Weighed:
    """Sequences with inputs `scale · x`, and the ratio of the densities of x and `scale · x` as their weights."""
    stats, truth = sample_statistics(problem, key, (BLOCK,))
    trace = jnp.trace(stats.xx, axis1=-2, axis2=-1)
    log_weight = problem.context * problem.dim * jnp.log(scale) - 0.5 * (scale**2 - 1) * trace
    ones, inputs = jnp.ones((BLOCK, 1)), scale * jnp.eye(problem.dim)[None]
    stats = stretched(stats, truth, inputs, ones, ones)
    return stats.gram / problem.context, oracle_weights(stats, truth.noise_std), jnp.exp(log_weight)


@jax.jit
def _see(
    models: AbstractModel,
    total: Float[Array, " c"],
    worst: Float[Array, "c k"],
    weight: Float[Array, "c k"],
    gram: Float[Array, "b e e"],
    oracle: Float[Array, "b d"],
    ratio: Float[Array, " b"],
) -> tuple[Float[Array, " c"], Float[Array, "c k"], Float[Array, "c k"]]:
    """Take in a block: the worst sequences so far one by one, and the sum of all others."""

    def take(model: AbstractModel, total: Array, worst: Array, weight: Array) -> tuple[Array, Array, Array]:
        losses = half_square(model.final(gram) - oracle)
        losses = jnp.concatenate([worst, jnp.where(jnp.isnan(losses), jnp.inf, losses)])
        weights = jnp.concatenate([weight, ratio])
        order = jnp.argsort(losses, descending=True)
        losses, weights = losses[order], weights[order]
        rest = jnp.sum(jnp.maximum(losses[_WORST:], 0) * weights[_WORST:])
        return total + rest, losses[:_WORST], weights[:_WORST]

    return jax.vmap(take)(models, total, worst, weight)
