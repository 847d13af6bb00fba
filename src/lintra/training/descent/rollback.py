"""Rollback: a model that has become far worse returns to the best one of its start."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra.training.descent.state import DescentState, where_starts

MIN_RATE_FACTOR = 2.0**-20  # a start whose learning rate is below this fraction cannot move


@dataclass(frozen=True)
class Rollback:
    """Keeps the best model of each start, and returns to it from models that are far worse.

    Args:
        ratio: A model whose validation loss is more than this many times its best one returns to the best. Its
            learning rate is halved for the rest of the run. `math.inf`: models never return. Default: 3.
    """

    ratio: float = 3.0

    def update(self, state: DescentState, validation_losses: Float[Array, " starts"]) -> DescentState:
        """Take in the validation losses of the present models."""
        better = validation_losses < state.best_loss
        best_loss = jnp.where(better, validation_losses, state.best_loss)
        best = where_starts(better, state.models, state.best)
        is_worse = ~(validation_losses <= self.ratio * best_loss)  # also where the loss is NaN
        # Where every step was rejected the rate is tiny. The model leaves that point, so the rate is restored.
        stuck = is_worse & (state.rate < MIN_RATE_FACTOR)
        return replace(
            state,
            best=best,
            best_loss=best_loss,
            models=where_starts(is_worse, best, state.models),
            opt_state=where_starts(is_worse, _without_momentum(state.opt_state), state.opt_state),
            rate=jnp.where(stuck, 1.0, state.rate),
            num_rollbacks=state.num_rollbacks + is_worse.astype(int),
        )


def _without_momentum(opt_state: Any) -> Any:
    """The optimiser's state with its mean gradient set to zero; the mean squares stay useful."""
    mean = "mu" if hasattr(opt_state, "mu") else "mean"
    return opt_state._replace(**{mean: jax.tree.map(jnp.zeros_like, getattr(opt_state, mean))})
