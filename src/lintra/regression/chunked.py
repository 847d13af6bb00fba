"""Weights of very many small regressions at once: Gram matrices and layers on the native kernel, chunk by chunk.

A deep linear transformer is a polynomial of high degree. On a context unlike those of its training its weights
may be wrong, or diverge. There the Bayes predictor of the training's noise prior answers, and a warning says how
often, why, and what to do (`lintra.regression.soundness`).
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra.models.base import AbstractModel
from lintra.regression import contexts, soundness, specialists, standardisation
from lintra.regression.solver import Solver, is_auto, solver
from lintra.regression.soundness import Causes, UnsoundWarning
from lintra.runtime import forks
from lintra.runtime.progress import Track
from lintra.statistics import examples
from lintra.statistics.gram import GramStatistics

_COMPARED = 4096  # contexts that are compared with the Bayes predictor at once


def solve(
    x: ArrayLike | Sequence[ArrayLike] | GramStatistics,
    y: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    model: str | Path | AbstractModel | Solver = "auto",
    standardise: bool = False,
    fit_intercept: bool = False,
    track: Track | None = None,
) -> Float[np.ndarray, "b weights"]:
    """Compute the weights of many regressions, each from its own context.

    Unless `standardise` is set, inputs are taken to have variance about one. With a published model or one of your
    own, weights are taken to have variance about one too, and noise to come from the model's prior; with `auto`,
    labels may have any unit. Where a context is unlike those of training and the model's weights are not sound,
    the Bayes predictor answers. Work is done in the precision of the data.

    Args:
        x: Inputs of shape (contexts, n, d), or one array (n, d) for every context, of any lengths; or the
            statistics of contexts.
        y: Labels of shape (contexts, n), or one array (n,) for every context.
        model: `auto` (default) for the nearest specialist, a published name, a file, or a model.
        standardise: Whether to divide the inputs of every context by their standard deviations there, or by their
            root mean squares if `fit_intercept` is `False`. Default `False`.
        fit_intercept: Whether to centre the inputs and labels of every context, and return intercepts too.
            Default `False`.
        track: Shows progress. Default `None`.

    Returns:
        Weights of shape (contexts, d), for the inputs as given. With `fit_intercept` they have shape
        (contexts, d+1), with the intercept in the last column.

    Raises:
        ValueError: If shapes do not match, a value is not finite, or statistics are to be centred.

    Warns:
        UnsoundWarning: If the Bayes predictor answered, with causes and remedies; or if n or d is outside of what
            the specialists were trained for.

    >>> rng = np.random.default_rng(0)
    >>> x, w = rng.normal(size=(1000, 20, 10)), rng.normal(size=(1000, 10))
    >>> y = np.einsum("bnd,bd->bn", x, w) + rng.normal(size=(1000, 20))
    >>> found = solve(x, y, model="diag-7-uniform(0,5)")
    >>> found.shape, bool(np.mean((found - w) ** 2) < 0.11)
    ((1000, 10), True)
    """
    forks.check_not_forked()
    if fit_intercept and isinstance(x, GramStatistics):
        raise ValueError(
            "`fit_intercept` needs the examples: a Gram matrix does not have the means of its inputs."
        )
    groups, dim, dtype = contexts.groups(x, y, specialists.nearest if is_auto(model) else lambda dim, count: None)
    count = sum(len(group.places) for group in groups)
    weights, causes = np.zeros((count, dim + fit_intercept), dtype), dict[int, Causes]()
    if groups and is_auto(model):
        counts = np.concatenate([group.counts for group in groups])
        if far := specialists.outside(dim, int(counts.min()), int(counts.max())):
            warnings.warn(far, UnsoundWarning, stacklevel=2)
    chosen = [solver(model, dim, int(group.counts[0])) for group in groups]
    parts = [(*pair, part) for pair in zip(chosen, groups, strict=True) for part in contexts.parts(pair[1])]
    numbers = range(len(parts))
    for number in numbers if track is None else track(numbers, len(parts)):
        own, group, part = parts[number]
        task = _Task(own, standardise, fit_intercept)
        places = group.places[part]
        weights[places], found = _solve_part(task, group, part)
        causes |= {int(places[row]): cause for row, cause in found.items()}
    if causes:
        warnings.warn(soundness.sentence(causes, count), UnsoundWarning, stacklevel=2)
    return weights


class _Task(eqx.Module):
    """A solver, and how data is brought into the units of training."""

    solver: Solver
    standardise: bool = eqx.field(static=True)
    centre: bool = eqx.field(static=True)


def _solve_part(
    task: _Task, group: contexts.Group, part: slice
) -> tuple[Float[np.ndarray, "b weights"], dict[int, Causes]]:
    """Return the weights of a chunk, and the causes by row where the Bayes predictor answered."""
    weights, fits, typical = _each(partial(_weights, task), group, part, None)
    doubtful, causes = np.flatnonzero(~(fits & typical)), dict[int, Causes]()
    if not doubtful.size:
        return weights, causes
    weights, rows = np.array(weights), np.arange(len(group.places))[part][doubtful]
    for start in range(0, len(doubtful), _COMPARED):
        some = slice(start, start + _COMPARED)
        best, sound, finite, cause = _each(partial(_compare, task), group, rows[some], float)
        if not finite.all():
            first = group.places[rows[some]][~finite][0]
            raise ValueError(
                f"Context {first} has values that are not finite, or so large that their squares are not."
            )
        replaced = ~(sound & fits[doubtful[some]])
        own = doubtful[some][replaced]
        with np.errstate(over="ignore"):
            # What is too large for 32 bits becomes the largest.
            weights[own] = np.nan_to_num(best[replaced].astype(weights.dtype))
        causes |= {int(row): list(Causes)[place] for row, place in zip(own, cause[replaced], strict=True)}
    return weights, causes


def _each(
    function: Callable[[examples.Data], tuple[Array, ...]],
    group: contexts.Group,
    part: contexts.Part,
    dtype: type | None,
) -> tuple[np.ndarray, ...]:
    """Apply a function to contexts, padded to a power of two so that few sizes are compiled."""
    rows = np.arange(len(group.places))[part]
    more = contexts.power_of_two(len(rows)) - len(rows)
    data = group.read(np.pad(rows, (0, more), mode="edge") if more else part, dtype)
    return tuple(np.asarray(result)[: len(rows)] for result in function(data))


def _weights(task: _Task, data: examples.Data) -> tuple[Array, ...]:
    """Return the model's weights, whether they fit, and whether contexts are typical of training."""
    # Two programs: XLA makes far slower loops of the judgement where it shares a program with the layers.
    return _judge(task, *_forward(task, data))


@jax.jit
def _forward(
    task: _Task, data: examples.Data
) -> tuple[standardisation.Units, GramStatistics, Float[Array, "b d"]]:
    units, stats = _read(task, data)
    return units, stats, task.solver.predictor.weights(stats)


@jax.jit
def _judge(
    task: _Task, units: standardisation.Units, stats: GramStatistics, weights: Float[Array, "b d"]
) -> tuple[Array, ...]:
    fits, typical = task.solver.judge(stats, weights)
    weights = units.back(weights, intercept=task.centre)
    return weights, fits & jnp.isfinite(weights).all(axis=-1), typical


@jax.jit
def _compare(task: _Task, data: examples.Data) -> tuple[Array, ...]:
    """Return the Bayes predictor's weights, whether the model's are sound, whether data is finite, and causes."""
    units, stats = _read(task, data)
    best, sound = task.solver.compare(stats, task.solver.predictor.weights(stats))
    finite = jnp.isfinite(stats.gram).all(axis=(1, 2))
    return units.back(best, intercept=task.centre), sound, finite, task.solver.diagnose(stats, centred=task.centre)


def _read(task: _Task, data: examples.Data) -> tuple[standardisation.Units, GramStatistics]:
    """Return the statistics of contexts in the units of training, and these units."""
    data, units = standardisation.to_units(
        data, standardise=task.standardise, centre=task.centre, scale_labels=task.solver.any_unit
    )
    return units, examples.statistics(data)
