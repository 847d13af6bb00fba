"""Weights of very many small regressions at once: Gram matrices and layers on the native kernel, chunk by chunk.

A deep linear transformer is a polynomial of high degree. On a context unlike those of its training its weights
may be wrong, or diverge. There the Bayes predictor of the training's noise prior answers, and a warning says how
often, why, and what to do (`lintra.soundness`).
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from lintra import contexts, forks, soundness, specialists, zoo
from lintra.baselines import Bayes, UnitBlindBayes
from lintra.evaluation import Track
from lintra.models import AbstractModel, Diagonal, GDPlusPlus, InOwnUnits, Rescaled
from lintra.noise import AbstractNoise, parse_noise
from lintra.predictor import AbstractLayered
from lintra.soundness import Causes, UnsoundWarning
from lintra.statistics import GramStatistics

_COMPARED = 4096  # contexts that are compared with the Bayes predictor at once
_PRIOR = "uniform(0,5)"  # of a model that does not say what it was trained on


class Solver(eqx.Module):
    """A model with all that is needed to use it safely.

    Args:
        predictor: The linear transformer, adapted to other context lengths and units where that is wanted.
        noise: The noise prior that it was trained on.
    """

    predictor: AbstractLayered
    noise: AbstractNoise
    mean_noise_var: Float[Array, ""]

    def __init__(self, predictor: AbstractLayered, noise: str | AbstractNoise):
        self.predictor, self.noise = predictor, parse_noise(noise)
        self.mean_noise_var = jnp.asarray(self.noise.second_moment)  # E[σ²], here since it is not traceable

    def judge(
        self, stats: GramStatistics, weights: Float[Array, "b d"]
    ) -> tuple[Bool[Array, " b"], Bool[Array, " b"]]:
        """Judge the model's weights at little cost.

        Returns:
            Whether weights are finite and fit no worse than zero, and whether the context is typical of training.
            Where both hold the weights are trusted; where only the first holds, `compare` decides.
        """
        typical = soundness.is_typical(stats)
        if not self.any_unit:
            typical &= soundness.has_typical_labels(stats, self.label_var(stats.dim))
        return soundness.fits(stats, weights), typical

    def compare(
        self, stats: GramStatistics, weights: Float[Array, "b d"]
    ) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
        """Compare the model's weights with the Bayes predictor's.

        Returns:
            The Bayes predictor's weights, or zeros where they are not finite, and whether the model's are sound.
        """
        bayes = UnitBlindBayes(self.noise) if self.any_unit else Bayes(self.noise)
        unit = stats.label_rms if self.any_unit else jnp.ones_like(stats.label_rms)
        best, excess = bayes.compare(stats.in_unit(unit), weights / unit[..., None])
        best = jnp.where(jnp.isfinite(best).all(axis=-1, keepdims=True), best * unit[..., None], 0)
        return best, soundness.fits(stats, weights) & (excess <= soundness.MAX_EXCESS_RISK)

    def diagnose(self, stats: GramStatistics, *, centred: bool) -> Int[Array, " b"]:
        """Return for each of several contexts why the model is not sound, as places in `list(Causes)`."""
        label_var = None if self.any_unit else self.label_var(stats.dim)
        return soundness.diagnose(stats, label_var=label_var, centred=centred)

    @property
    def any_unit(self) -> bool:
        """Whether labels may come in any unit."""
        return isinstance(self.predictor, InOwnUnits)

    def label_var(self, dim: int) -> Float[Array, ""]:
        """The mean square of the labels in training, `d + E[σ²]`."""
        return dim + self.mean_noise_var


def is_auto(model: object) -> bool:
    """Whether the nearest specialist is asked for."""
    return isinstance(model, str) and model == "auto"


def solver(model: str | Path | AbstractModel | Solver, dim: int, context: int) -> Solver:
    """What will solve contexts of this many examples: a specialist (`auto`), or a model that is given.

    Args:
        model: `auto`, a published name, a model file, a model, or a solver.
        dim: Number of inputs.
        context: Number of examples.
    """
    if isinstance(model, Solver):
        return model
    if is_auto(model):
        return Solver(specialists.adapted(specialists.load_nearest(dim, context)), specialists.prior(dim))
    found, noise = given_model(model, dim)
    return Solver(Rescaled(found), noise)


def given_model(model: object, dim: int) -> tuple[AbstractModel, str]:
    """Return a model by its name, its file or itself, for so many inputs, and its noise prior.

    Raises:
        TypeError: If `model` is none of these.
        ValueError: If it is for another number of inputs.
    """
    if not isinstance(model, str | Path | AbstractModel):
        raise TypeError(
            f"`model` must be `auto`, a published name, a model file or a model, got {type(model).__name__}."
        )
    found, noise = (model, None) if isinstance(model, AbstractModel) else zoo.find(str(model))
    if found.dim != dim and isinstance(found, Diagonal | GDPlusPlus):
        found = found.at(dim)
    if found.dim != dim:
        raise ValueError(
            f"`model` is for {found.dim} inputs, and there are {dim}. DIAG and GD++ serve any number."
        )
    return found, noise or _PRIOR


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
    function: Callable[[contexts.Data], tuple[Array, ...]],
    group: contexts.Group,
    part: contexts.Part,
    dtype: type | None,
) -> tuple[np.ndarray, ...]:
    """Apply a function to contexts, padded to a power of two so that few sizes are compiled."""
    rows = np.arange(len(group.places))[part]
    more = contexts.power_of_two(len(rows)) - len(rows)
    data = group.read(np.pad(rows, (0, more), mode="edge") if more else part, dtype)
    return tuple(np.asarray(result)[: len(rows)] for result in function(data))


def _weights(task: _Task, data: contexts.Data) -> tuple[Array, ...]:
    """Return the model's weights, whether they fit, and whether contexts are typical of training."""
    # Two programs: XLA makes far slower loops of the judgement where it shares a program with the layers.
    return _judge(task, *_forward(task, data))


@jax.jit
def _forward(task: _Task, data: contexts.Data) -> tuple[contexts.Units, GramStatistics, Float[Array, "b d"]]:
    units, stats = _read(task, data)
    return units, stats, task.solver.predictor.weights(stats)


@jax.jit
def _judge(
    task: _Task, units: contexts.Units, stats: GramStatistics, weights: Float[Array, "b d"]
) -> tuple[Array, ...]:
    fits, typical = task.solver.judge(stats, weights)
    weights = units.back(weights, intercept=task.centre)
    return weights, fits & jnp.isfinite(weights).all(axis=-1), typical


@jax.jit
def _compare(task: _Task, data: contexts.Data) -> tuple[Array, ...]:
    """Return the Bayes predictor's weights, whether the model's are sound, whether data is finite, and causes."""
    units, stats = _read(task, data)
    best, sound = task.solver.compare(stats, task.solver.predictor.weights(stats))
    finite = jnp.isfinite(stats.gram).all(axis=(1, 2))
    return units.back(best, intercept=task.centre), sound, finite, task.solver.diagnose(stats, centred=task.centre)


def _read(task: _Task, data: contexts.Data) -> tuple[contexts.Units, GramStatistics]:
    """Return the statistics of contexts in the units of training, and these units."""
    data, units = contexts.to_units(
        data, standardise=task.standardise, centre=task.centre, scale_labels=task.solver.any_unit
    )
    return units, contexts.statistics(data)
