"""Eq. (8): do free diagonals become p_x I ⊕ p_y and q_x I ⊕ q_y by training?"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import zoo
from lintra.display import Row
from lintra.experiments.descents import best_models, excess_losses, label_scale, named_estimate, run_descent
from lintra.experiments.experiment import AbstractExperiment
from lintra.experiments.free_diagonal import FreeDiagonal
from lintra.models.base import AbstractModel
from lintra.models.families import stack
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.training.descent.batch_source import BatchSource
from lintra.training.descent.descent import Descent
from lintra.training.descent.schedule import Schedule
from lintra.training.stage import Models
from lintra.training.warm_starts import WarmStarts


@dataclass(frozen=True)
class FreeStarts:
    """Free diagonals with independent normal entries, so that no two of them are equal.

    Args:
        num_layers: Number of layers.
        problem: Gives n and d.
        num_starts: Number of models.
        scale: Standard deviation of the entries, for labels divided by their standard deviation.
    """

    num_layers: int
    problem: NoisyRegression
    num_starts: int
    scale: float

    def __call__(self, models: Models, warm_starts: WarmStarts, key: Key[Array, ""]) -> AbstractModel:
        """Draw the models. A start depends on its index and not on how many there are."""
        size = {"dim": self.problem.dim, "num_examples": self.problem.num_examples, "scale": self.scale}
        drawn: list[AbstractModel] = [
            FreeDiagonal.random(self.num_layers, **size, key=jax.random.fold_in(key, start))
            for start in range(self.num_starts)
        ]
        return stack(drawn).for_label_scale(label_scale(self.problem))


@dataclass(frozen=True)
class Equation8(AbstractExperiment):
    """Free diagonals from random starts, at depths where all starts can be trained to the end.

    Args:
        noise: Noise prior, at n = 20 and d = 10. Default: `uniform(0,5)`.
        depths: Numbers of layers. Default: 1, 2 and 3.
        num_starts: Number of starts of each depth. Default: 12.
        scale: Standard deviation of the entries at the start. Default: 0.3.
        num_steps: Number of steps of Adam. Default: 6,000.
        learning_rate: Its rate, which falls along a cosine. Default: 0.03.
        batch_size: Number of sequences in a step. Default: 512.
        pool_size: Number of sequences that batches are drawn from. Default: 262,144.
        num_sequences: Number of fresh sequences on which losses are measured. Default: 131,072.
    """

    name: ClassVar[str] = "equation-8"
    noise: str = "uniform(0,5)"
    depths: tuple[int, ...] = (1, 2, 3)
    num_starts: int = 12
    scale: float = 0.3
    num_steps: int = 6000
    learning_rate: float = 3e-2
    batch_size: int = 512
    pool_size: int = 262_144
    num_sequences: int = 131_072

    def parts(self) -> list[str]:
        """One part for each depth."""
        return [f"{depth} layers" for depth in self.depths]

    def run(self, part: str, progress: Progress = SILENT) -> list[Row]:
        """Train all starts of one depth, and measure them beside the published DIAG of this depth."""
        depth, problem = int(part.split()[0]), NoisyRegression(noise=self.noise)
        training_key, evaluation_key = jax.random.split(jax.random.fold_in(jax.random.key(self.seed), depth))
        stage = self._stage(depth, problem, training_key)
        at_start = np.asarray(jax.vmap(_spread)(stage.start({}).models))
        trained = best_models(stage, run_descent(stage, progress=progress))
        models = [_canonical(model) for model in trained]
        published = zoo.load(f"diag-{depth}-{self.noise}")
        compared = [*models, *(_free(model.averaged()) for model in models), _free(published)]
        losses = excess_losses(compared, problem, num_sequences=self.num_sequences, key=evaluation_key)
        averaged, reference = losses[self.num_starts : -1], losses[-1]
        return [
            {"layers": depth, "start": start, "spread_at_start": float(at_start[start])}
            | _row(models[start], losses[start], averaged[start], reference)
            for start in range(self.num_starts)
        ]

    def _stage(self, depth: int, problem: NoisyRegression, key: Key[Array, ""]) -> Descent:
        scale = label_scale(problem)
        source = BatchSource(problem, batch_size=self.batch_size, pool_size=self.pool_size, label_scale=scale)
        return Descent(
            f"{depth} layers",
            key,
            source,
            starts=FreeStarts(depth, problem, self.num_starts, self.scale),
            num_steps=self.num_steps,
            schedule=Schedule(self.learning_rate, warmup_steps=100),
        )


def _row(
    model: FreeDiagonal,
    losses: Float[np.ndarray, " b"],
    averaged: Float[np.ndarray, " b"],
    reference: Float[np.ndarray, " b"],
) -> Row:
    """Losses of one start, as trained and with averaged entries, beside the published DIAG."""
    return {
        "spread": float(_spread(model)),
        **named_estimate("excess", losses),
        **named_estimate("published_excess", reference),
        **named_estimate("above_published", losses - reference),
        **named_estimate("averaged_above_published", averaged - reference),
        **named_estimate("lost_by_averaging", averaged - losses),
        "p": np.asarray(model.p[:, 0]).tolist(),
        "q": np.asarray(model.q[:, 0]).tolist(),
    }


def _spread(model: AbstractModel) -> Float[Array, ""]:
    """Largest deviation of an entry of an x block from the block's mean, over the block's root mean square.

    Over P and Q of all layers, without the x block of the last P, which is never read.
    """
    assert isinstance(model, FreeDiagonal)
    blocks = [model.q[..., :-1].reshape(-1, model.dim), model.p[:-1, :, :-1].reshape(-1, model.dim)]
    rows = jnp.concatenate(blocks).astype(float)  # (blocks, d)
    size = jnp.sqrt(jnp.mean(rows**2, axis=-1, keepdims=True))
    return jnp.max(jnp.abs(rows - rows.mean(axis=-1, keepdims=True)) / size)


def _canonical(model: AbstractModel) -> FreeDiagonal:
    """The same model with P and Q of every layer of equal norm, and zeros where the last P is never read."""
    assert isinstance(model, FreeDiagonal)
    p, q = model.p.at[-1, :, :-1].set(0.0), model.q
    balance = jnp.sqrt(jnp.linalg.norm(q, axis=-1) / jnp.linalg.norm(p, axis=-1))[..., None]
    return FreeDiagonal(p * balance, q / balance, model.num_examples)


def _free(model: AbstractModel) -> FreeDiagonal:
    """A DIAG model as free diagonals."""
    P, Q = (np.diagonal(matrix, axis1=-2, axis2=-1) for matrix in model.matrices())
    return FreeDiagonal(P * model.num_examples, Q, model.num_examples)
