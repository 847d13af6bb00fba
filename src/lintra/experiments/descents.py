"""Descents from several starts, of which every start counts, and their losses on the same fresh sequences."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.display import Row
from lintra.evaluation.estimate import Estimate
from lintra.models.base import AbstractModel
from lintra.models.families import stack
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.training.batch import Batch
from lintra.training.descent.descent import Descent
from lintra.training.descent.state import DescentState
from lintra.training.sampling import BLOCK, sample_with_bayes

Observer = Callable[[DescentState], None]


def label_scale(problem: NoisyRegression) -> float:
    """The labels' standard deviation √(d + E[σ²]). Divided by it, all parameters are near one."""
    return float((problem.dim + problem.noise.second_moment) ** 0.5)


def run_descent(stage: Descent, *, progress: Progress = SILENT, observe: Observer | None = None) -> DescentState:
    """Run a descent to its end.

    Args:
        stage: The descent.
        progress: Told after every validation.
        observe: Called with the state before the first step and after every validation. `None` (default): not.

    Returns:
        The last state, with the best models of all starts.
    """
    data, state = stage.prepare(), stage.start({})
    progress.start(stage.name, stage.num_steps)
    if observe is not None:
        observe(state)
    while (done := stage.progress(state))[0] < done[1]:
        state = stage.advance(state, data)
        if observe is not None:
            observe(state)
        progress.update(stage.progress(state)[0], **stage.metrics(state))
    return state


def best_models(stage: Descent, state: DescentState) -> list[AbstractModel]:
    """The best model of every start, in 64 bits and for labels as they are."""
    num_starts = state.best_loss.shape[0]
    stacked = jax.tree.map(lambda leaf: leaf.astype(float), state.best)
    models = [jax.tree.map(lambda leaf, start=start: leaf[start], stacked) for start in range(num_starts)]
    return [model.for_label_scale(stage.source.label_scale) for model in models]


def excess_losses(
    models: Sequence[AbstractModel], problem: NoisyRegression, *, num_sequences: int, key: Key[Array, ""]
) -> Float[np.ndarray, "models sequences"]:
    """Loss above the Bayes floor, `½‖w − w_B‖²`, of models of one shape on the same fresh sequences.

    Args:
        models: The models.
        problem: Where the sequences come from.
        num_sequences: Number of sequences, rounded up to whole blocks.
        key: Randomness.
    """
    stacked = stack(list(models))
    blocks = [
        np.asarray(_block_losses(stacked, sample_with_bayes(problem, block_key)[0]))
        for block_key in jax.random.split(key, -(-num_sequences // BLOCK))
    ]
    return np.concatenate(blocks, axis=1)


def bayes_losses(
    problem: NoisyRegression, *, num_sequences: int, key: Key[Array, ""]
) -> Float[np.ndarray, " sequences"]:
    """Adjusted losses of the Bayes predictor on the same sequences."""
    losses = []
    for block_key in jax.random.split(key, -(-num_sequences // BLOCK)):
        batch, oracle = sample_with_bayes(problem, block_key)
        losses.append(np.asarray(half_square(batch.target - oracle)))
    return np.concatenate(losses)


def named_estimate(name: str, values: Float[np.ndarray, " n"]) -> Row:
    """The mean of independent values under a name, and its standard error beside it."""
    estimate = Estimate.from_values(values)
    return {name: estimate.mean, f"{name}_error": estimate.standard_error}


@jax.jit
def _block_losses(models: AbstractModel, batch: Batch) -> Float[Array, "models b"]:
    """Infinite where a model overflows."""

    def losses(model: AbstractModel) -> Float[Array, " b"]:
        found = half_square(model.final_weights(batch.mean_gram) - batch.target)
        return jnp.where(jnp.isnan(found), jnp.inf, found)

    return jax.lax.map(losses, models)
