"""Gradient descent as a stage: Adam or SOAP from several starts, the best model on validation sequences kept."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.models.base import AbstractModel
from lintra.training.batch import Batch, cast
from lintra.training.descent.batch_source import BatchSource, DescentData
from lintra.training.descent.rollback import MIN_RATE_FACTOR, Rollback
from lintra.training.descent.schedule import Schedule
from lintra.training.descent.state import DescentState
from lintra.training.descent.step import OPTIMISERS, GradientGuard, descent_step
from lintra.training.stage import AbstractStage, Models, TrainingFailedError
from lintra.training.validation import ValidationSet
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts

_START, _PREPARE, _STEP = 0, 1, 2  # folded into the stage's key: starts, prepared sequences, steps


class Descent(AbstractStage[DescentState, DescentData]):
    """A stage of Adam or SOAP.

    A step with a loss or gradient that is not finite is rejected and counted; the learning rate is then halved and
    recovers in twenty accepted steps.

    Args:
        name: Name under which the stage's model is known to later stages.
        key: Randomness.
        source: The sequences.
        starts: Gives the stacked models to start from, given the models of earlier stages, warm starts and a key.
        num_steps: Number of steps.
        schedule: The learning rate.
        printed_scale: Whether the rate is that of P and Q as printed, and not of the family's parameters, some of
            which are n times as large. Default: no.
        optimiser: `adam` (default) or `soap`.
        guard: Which gradients are shortened; norms are for labels divided by the source's `label_scale`.
        rollback: When a model returns to its best.
        validate_every: Number of steps between two validations. Default: 250.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    source: BatchSource
    starts: Callable[[Models, WarmStarts, Key[Array, ""]], AbstractModel] = eqx.field(static=True)
    num_steps: int = eqx.field(static=True)
    schedule: Schedule = eqx.field(static=True)
    printed_scale: bool = eqx.field(static=True, default=False)
    optimiser: str = eqx.field(static=True, default="adam")
    guard: GradientGuard = eqx.field(static=True, default=GradientGuard())
    rollback: Rollback = eqx.field(static=True, default=Rollback())
    validate_every: int = eqx.field(static=True, default=250)

    @property
    def cache_key(self) -> Hashable:
        """The problem, the key, and how many sequences of which kind."""
        return "descent", self.source.cache_key(self.key)

    def prepare(self) -> DescentData:
        """Draw the pool, if there is one, and the validation set."""
        return self.source.prepare(jax.random.fold_in(self.key, _PREPARE))

    def start(self, models: Models, warm_starts: WarmStarts = NO_WARM_STARTS) -> DescentState:
        """The state before the first step."""
        stacked = self.starts(models, warm_starts, jax.random.fold_in(self.key, _START))
        stacked = cast(stacked.for_label_scale(1 / self.source.label_scale), self.source.dtype)
        return DescentState.from_models(stacked, OPTIMISERS[self.optimiser].init(stacked))

    def advance(self, state: DescentState, data: DescentData) -> DescentState:
        """Take `validate_every` steps, then validate."""
        pool, validation = data
        if int(state.step) == 0:
            state = _validate(self, state, validation)
        state = _take_steps(self, state, pool, min(self.validate_every, self.num_steps - int(state.step)))
        state = _validate(self, state, validation)
        if (np.asarray(state.rate_factor) >= MIN_RATE_FACTOR).any():
            return state
        # No start can move any more. The best models are the result, unless they have learned nothing.
        if not float(np.min(state.best_loss)) < 0.9 * float(validation.loss_of_zero):
            raise TrainingFailedError(
                f"Training diverged at step {int(state.step)}: every step is rejected (the loss is "
                f"{float(np.min(state.loss)):.3g}). Try a smaller learning rate than "
                f"{self.schedule.learning_rate:g}, a smaller initial scale, or 64-bit precision."
            )
        return replace(state, stopped=jnp.ones((), bool))

    def progress(self, state: DescentState) -> tuple[int, int]:
        """In steps."""
        return self.num_steps if state.stopped else int(state.step), self.num_steps

    def metrics(self, state: DescentState) -> dict[str, Any]:
        """Losses of the best start and of all, and the numbers of rejected steps and of rollbacks."""
        return {
            "step": int(state.step),
            "loss": float(np.min(state.loss)),
            "validation_loss": float(np.min(state.best_loss)),
            "validation_losses": [float(value) for value in state.best_loss],
            "num_rejected": int(state.num_rejected.sum()),
            "num_rollbacks": int(state.num_rollbacks.sum()),
        }

    def finish(self, state: DescentState) -> AbstractModel:
        """The best model of all starts."""
        best = int(np.argmin(state.best_loss))
        model = jax.tree.map(lambda leaf: leaf[best].astype(float), state.best)
        return model.for_label_scale(self.source.label_scale)


@partial(jax.jit, static_argnames="num_steps")
def _take_steps(stage: Descent, state: DescentState, pool: Batch | None, num_steps: int) -> DescentState:
    """Take steps, and average the losses of each start over them."""
    step_key = jax.random.fold_in(stage.key, _STEP)

    def step(state: DescentState, _: None) -> tuple[DescentState, Float[Array, " starts"]]:
        batch = stage.source.batch(step_key, state.step, pool)
        return descent_step(
            state,
            batch,
            stage.schedule(state.step, stage.num_steps),
            optimiser=stage.optimiser,
            guard=stage.guard,
            printed_scale=stage.printed_scale,
        )

    state, losses = jax.lax.scan(step, state, length=num_steps)
    return replace(state, loss=jnp.nanmean(losses.astype(float), axis=0))


@jax.jit
def _validate(stage: Descent, state: DescentState, validation: ValidationSet) -> DescentState:
    """Keep the models that are best on the validation set, and return to them from far worse ones."""
    losses = jax.vmap(validation.loss)(state.models.for_label_scale(stage.source.label_scale))
    return stage.rollback.update(state, losses)
