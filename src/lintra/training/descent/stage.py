"""Adam or SOAP on sequences, several starts side by side, with bad steps refused and the best models kept.

Overflow is expected here: a deep model is a polynomial of high degree in its data. A step whose loss or slope
is not finite is bad: it is not taken, it is counted, and the learning rate is halved and comes back with
twenty good steps. A slope many times longer than usual, which comes from sequences that explode, is shortened;
its direction leads away from there. After every round the models are judged on held-out sequences; one that
has become far worse than it was returns to its best, and its rate is halved for good.
"""

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key, PyTree

from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.training.batch import Lesson, cast, loss
from lintra.training.descent.soap import scale_by_soap
from lintra.training.sampling import sample_lesson, sample_pool, sample_widened
from lintra.training.stage import AbstractStage, Models, State, TrainingFailedError, token
from lintra.training.validation import HeldOut, sample_held_out

_RECOVERY = 2 ** (1 / 20)  # a halved rate is back after twenty good steps
_MEMORY = 0.99  # of the usual length of a slope
_LOST = 2.0**-20  # the share of the rate below which a start is given up


class Descent(AbstractStage):
    """A stage of Adam or SOAP.

    Arguments:
        name: What the model that is found will be called.
        key: Randomness.
        problem: Where sequences come from.
        starts: Gives the models to start from, stacked, from what the stages before have found and a key.
        steps: Number of steps.
        learning_rate: The rate at the first step.
        printed: Whether the rate is that of P and Q as printed, not of the family's own numbers, of which some
            are n times as large.
        optimiser: `adam` or `soap`.
        warm_up: Steps in which the rate rises from zero.
        lowered: The share of the steps after which the rate is a tenth; nothing for a rate that falls along a
            cosine to a hundredth.
        batch: Sequences in a step.
        objective: `query`, `truth` or `bayes`.
        pool: Number of sequences to draw batches from; nothing for fresh ones at every step.
        widened: Number of sequences in the pool, besides, that are wider than the problem's.
        unit: Labels are divided by this, which is the size of a label where the numbers should be near one.
        clip: Longest slope in the weights, per sequence, in that unit.
        limit: Longest slope of a step, in that unit; a longer one is shortened.
        spike: Longest slope of a step, in times the usual.
        astray: A model whose held-out loss is this many times its best returns to its best.
        dtype: Precision of the steps.
        round: Steps between two looks at the held-out sequences.
        held_out: Number of held-out sequences.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    problem: NoisyRegression
    starts: Callable[[Models, Key[Array, ""]], AbstractModel] = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    learning_rate: float = eqx.field(static=True)
    printed: bool = eqx.field(static=True, default=False)
    optimiser: str = eqx.field(static=True, default="adam")
    warm_up: int = eqx.field(static=True, default=0)
    lowered: float | None = eqx.field(static=True, default=None)
    batch: int = eqx.field(static=True, default=2048)
    objective: str = eqx.field(static=True, default="bayes")
    pool: int | None = eqx.field(static=True, default=None)
    widened: int = eqx.field(static=True, default=0)
    unit: float = eqx.field(static=True, default=1.0)
    clip: float | None = eqx.field(static=True, default=10.0)
    limit: float = eqx.field(static=True, default=math.inf)
    spike: float = eqx.field(static=True, default=10.0)
    astray: float = eqx.field(static=True, default=3.0)
    dtype: str = eqx.field(static=True, default="float32")
    round: int = eqx.field(static=True, default=250)
    held_out: int = eqx.field(static=True, default=16_384)

    @property
    def material(self) -> Hashable:
        """The problem, the key, and how many sequences of what kind."""
        kind = self.objective, self.pool, self.widened, self.unit, self.dtype, self.held_out
        return "descent", token(self.problem, self.key), kind

    def prepare(self) -> tuple[Lesson | None, HeldOut]:
        """Draw the pool, where there is one, and the held-out sequences."""
        pool_key, widened_key, held_out_key = jax.random.split(jax.random.fold_in(self.key, 1), 3)
        held_out = sample_held_out(self.problem, held_out_key, self.held_out)
        if self.pool is None:
            return None, held_out
        pool = sample_pool(self.problem, pool_key, objective=self.objective, size=self.pool, dtype=self.dtype)
        if self.widened:
            widened = sample_widened(
                self.problem, widened_key, objective=self.objective, size=self.widened, dtype=self.dtype
            )
            pool = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), pool, widened)
        return pool.in_unit(self.unit), held_out

    def start(self, models: Models) -> State:
        """The optimiser at rest, for every start."""
        stacked = self.starts(models, jax.random.fold_in(self.key, 0))
        stacked = cast(stacked.relabelled(1 / self.unit), self.dtype)
        count = jax.tree.leaves(stacked)[0].shape[0]
        return {
            "step": jnp.zeros((), int),
            "ended": jnp.zeros((), bool),
            "models": stacked,
            "optimiser": _OPTIMISERS[self.optimiser].init(stacked),
            "rate": jnp.ones(count),
            "usual": jnp.full(count, jnp.inf),
            "rejected": jnp.zeros(count, int),
            "returned": jnp.zeros(count, int),
            "loss": jnp.full(count, jnp.inf),
            "best": stacked,
            "best_loss": jnp.full(count, jnp.inf),
        }

    def advance(self, state: State, material: tuple[Lesson | None, HeldOut]) -> State:
        """One round: steps, then a look at the held-out sequences."""
        pool, held_out = material
        if int(state["step"]) == 0:
            state = _judge(self, state, held_out)
        state = _round(self, state, pool, min(self.round, self.steps - int(state["step"])))
        state = _judge(self, state, held_out)
        if (np.asarray(_share(state)) >= _LOST).any():
            return state
        if not float(np.min(state["best_loss"])) < 0.9 * float(held_out.loss_of_zero):
            raise TrainingFailedError(
                f"Training diverged at step {int(state['step'])}: every step is refused (loss is "
                f"{float(np.min(state['loss'])):.3g}). Try a smaller learning rate than {self.learning_rate:g}, a "
                "smaller initial scale, or 64-bit precision."
            )
        return state | {"ended": jnp.ones((), bool)}  # nothing more to gain: the best so far is the result

    def progress(self, state: State) -> tuple[int, int]:
        """In steps."""
        return self.steps if state["ended"] else int(state["step"]), self.steps

    def metrics(self, state: State) -> dict[str, Any]:
        """Of the best start, with what was refused in all."""
        return {
            "step": int(state["step"]),
            "loss": float(np.min(state["loss"])),
            "held_out": float(np.min(state["best_loss"])),
            "by_start": [float(value) for value in state["best_loss"]],
            "rejected": int(state["rejected"].sum()),
            "returned": int(state["returned"].sum()),
        }

    def finish(self, state: State) -> AbstractModel:
        """The best model of all starts."""
        best = int(np.argmin(state["best_loss"]))
        return jax.tree.map(lambda leaf: leaf[best].astype(float), state["best"]).relabelled(self.unit)


_OPTIMISERS: dict[str, Any] = {"adam": optax.scale_by_adam(), "soap": scale_by_soap()}


def _share(state: State) -> Float[Array, " starts"]:
    """What is left of the learning rate: halved for a while by bad steps, and for good by every return."""
    return state["rate"] * 0.5 ** state["returned"].astype(float)


def _schedule(stage: Descent, step: Array) -> Float[Array, ""]:
    step = step.astype(float)
    rise = jnp.minimum(1.0, (step + 1) / max(stage.warm_up, 1))
    if stage.lowered is not None:
        return rise * stage.learning_rate * jnp.where(step < stage.lowered * stage.steps, 1.0, 0.1)
    return rise * stage.learning_rate * (0.505 + 0.495 * jnp.cos(jnp.pi * step / stage.steps))


@partial(jax.jit, static_argnames="steps")
def _round(stage: Descent, state: State, pool: Lesson | None, steps: int) -> State:
    """Take steps, refusing the bad ones."""
    slope = jax.vmap(jax.value_and_grad(partial(loss, clip=stage.clip)), in_axes=(0, None))

    def step(state: State, _: None) -> tuple[State, Float[Array, " starts"]]:
        losses, slopes = slope(state["models"], _batch(stage, state["step"], pool))
        length = _length(slopes)
        good = jnp.isfinite(losses) & jnp.isfinite(length)
        kept = jnp.minimum(length, jnp.minimum(stage.limit, stage.spike * state["usual"]))
        slopes = jax.tree.map(lambda leaf: _lift(kept / jnp.maximum(length, 1e-300), leaf) * leaf, slopes)
        slopes = choose(good, slopes, jax.tree.map(jnp.zeros_like, slopes))
        with jax.numpy_dtype_promotion("standard"):  # optax mixes precisions
            moves, optimiser = _OPTIMISERS[stage.optimiser].update(slopes, state["optimiser"])
        rate = _schedule(stage, state["step"]) * _share(state)
        if stage.printed:
            moves = moves.from_printed_scale()
        moved = jax.tree.map(lambda at, move: at - _lift(rate, at) * move, state["models"], moves)
        usual = jnp.where(jnp.isinf(state["usual"]), kept, _MEMORY * state["usual"] + (1 - _MEMORY) * kept)
        return state | {
            "step": state["step"] + 1,
            "models": choose(good, moved, state["models"]),
            "optimiser": choose(good, optimiser, state["optimiser"]),
            "usual": jnp.where(good, usual, state["usual"]),
            "rate": jnp.where(good, jnp.minimum(1, state["rate"] * _RECOVERY), state["rate"] / 2),
            "rejected": state["rejected"] + (~good).astype(int),
        }, losses

    state, losses = jax.lax.scan(step, state, length=steps)
    return state | {"loss": jnp.nanmean(losses.astype(float), axis=0)}


def _batch(stage: Descent, step: Array, pool: Lesson | None) -> Lesson:
    """The sequences of a step, the same for all starts."""
    key = jax.random.fold_in(jax.random.fold_in(stage.key, 2), step)
    if pool is None:
        settings = {"objective": stage.objective, "size": stage.batch, "dtype": stage.dtype}
        return sample_lesson(stage.problem, key, **settings).in_unit(stage.unit)
    return pool.pick(jax.random.randint(key, (stage.batch,), 0, pool.gram.shape[0]))


@jax.jit
def _judge(stage: Descent, state: State, held_out: HeldOut) -> State:
    """Keep what is best on held-out sequences, and return to it from where things went wrong."""
    losses = jax.vmap(held_out.loss)(state["models"].relabelled(stage.unit))
    better = losses < state["best_loss"]
    best_loss = jnp.where(better, losses, state["best_loss"])
    best = choose(better, state["models"], state["best"])
    astray = ~(losses <= stage.astray * best_loss)
    calm = _without_momentum(state["optimiser"])
    stuck = astray & (state["rate"] < _LOST)  # every step was refused where it had gone, which is behind it now
    return state | {
        "best": best,
        "best_loss": best_loss,
        "models": choose(astray, best, state["models"]),
        "optimiser": choose(astray, calm, state["optimiser"]),
        "rate": jnp.where(stuck, 1.0, state["rate"]),
        "returned": state["returned"] + astray.astype(int),
    }


def _without_momentum(optimiser: Any) -> Any:
    """An optimiser's state with no memory of where it was going; how long slopes were is worth keeping."""
    mean = "mu" if hasattr(optimiser, "mu") else "mean"
    return optimiser._replace(**{mean: jax.tree.map(jnp.zeros_like, getattr(optimiser, mean))})


def choose(condition: Array, yes: PyTree[Array], no: PyTree[Array]) -> PyTree[Array]:
    """`yes` for the starts where the condition holds, `no` for the others; numbers that all share are `yes`'s."""
    return jax.tree.map(lambda a, b: jnp.where(_lift(condition, a), a, b) if a.ndim else a, yes, no)


def _lift(per_start: Array, like: Array) -> Array:
    lifted = per_start.reshape(per_start.shape + (1,) * (like.ndim - per_start.ndim))
    return lifted.astype(like.dtype) if jnp.issubdtype(per_start.dtype, jnp.floating) else lifted


def _length(slopes: PyTree[Array]) -> Float[Array, " starts"]:
    squares = [
        jnp.sum(leaf.astype(float) ** 2, axis=tuple(range(1, leaf.ndim))) for leaf in jax.tree.leaves(slopes)
    ]
    return jnp.sqrt(jnp.sum(jnp.stack(squares), axis=0))
