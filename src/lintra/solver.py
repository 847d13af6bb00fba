"""Weights of very many small regressions at once: Gram matrices and layers on the native kernel, chunk by chunk.

A deep linear transformer is a polynomial of high degree: on a context unlike those of its training it can explode.
Its weights are *sound* if they are finite and fit their own context no worse than zero weights do. Where they are
not, the Bayes predictor of the training's noise prior answers, and a warning says how often.
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

from lintra import contexts, specialists, zoo
from lintra.baselines import Bayes
from lintra.evaluation import Track
from lintra.models import AbstractModel, Diagonal, GDPlusPlus, InOwnUnits, Rescaled
from lintra.noise import AbstractNoise, parse_noise
from lintra.predictor import AbstractLayered
from lintra.statistics import GramStatistics

_WORSE = 1.001  # times the sum of squared labels: weights that leave more than this are not sound
_FALLBACKS = 4096  # contexts that the Bayes predictor is given at once
_PRIOR = "uniform(0,5)"  # of a model that does not say what it was trained on


class UnsoundWarning(UserWarning):
    """A model gave weights that make no sense, or may do so, and what was done about it."""


class Solver(eqx.Module):
    """A model with all that is needed to use it safely.

    Arguments:
        predictor: The linear transformer, adapted to other context lengths and units where that is wanted.
        noise: The noise prior that it was trained on.
    """

    predictor: AbstractLayered
    noise: AbstractNoise

    def __init__(self, predictor: AbstractLayered, noise: str | AbstractNoise):
        self.predictor, self.noise = predictor, parse_noise(noise)

    def weights(self, stats: GramStatistics) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
        """The weights for every context, and whether they are sound."""
        weights = self.predictor.weights(stats)
        square = jnp.einsum("bi,bij,bj->b", weights, stats.xx, weights)
        left = stats.yy - 2 * jnp.sum(weights * stats.xy, axis=-1) + square
        return weights, jnp.isfinite(weights).all(axis=-1) & (left <= _WORSE * stats.yy)

    def fallback(self, stats: GramStatistics) -> Float[Array, "b d"]:
        """The Bayes predictor's weights, or zeros where they are not finite.

        Where labels come in unknown units, they are brought into those that the prior expects.
        """
        unit = self.unit(stats) if self.any_unit else jnp.ones(len(stats.count))
        weights = Bayes(self.noise).weights(stats.in_unit(unit)) * unit[..., None]
        return jnp.where(jnp.isfinite(weights).all(axis=-1, keepdims=True), weights, 0)

    @property
    def any_unit(self) -> bool:
        """Whether labels may come in any unit."""
        return isinstance(self.predictor, InOwnUnits)

    def unit(self, stats: GramStatistics) -> Float[Array, " b"]:
        """The unit in which the labels of every context have the variance that those of the prior have."""
        return stats.label_rms / (stats.dim + self.noise.second_moment) ** 0.5


def is_auto(model: object) -> bool:
    """Whether the nearest specialist is asked for."""
    return isinstance(model, str) and model == "auto"


def solver(model: str | Path | AbstractModel | Solver, dim: int, context: int) -> Solver:
    """What will solve contexts of this many examples: a specialist (`auto`), or a model that is given.

    Arguments:
        model: `auto`, a published name, a model file, a model, or a solver.
        dim: Number of inputs.
        context: Number of examples.
    """
    if isinstance(model, Solver):
        return model
    if is_auto(model):
        return Solver(specialists.adapted(specialists.load_nearest(dim, context)), specialists.prior(dim))
    if not isinstance(model, str | Path | AbstractModel):
        raise ValueError(
            f"`model` must be `auto`, a published name, a model file or a model, got {type(model).__name__}."
        )
    found, noise = (model, None) if isinstance(model, AbstractModel) else zoo.find(str(model))
    if found.dim != dim and isinstance(found, Diagonal | GDPlusPlus):
        found = found.at(dim)
    if found.dim != dim:
        raise ValueError(
            f"`model` is for {found.dim} inputs, and there are {dim}. DIAG and GD++ serve any number."
        )
    return Solver(Rescaled(found), noise or _PRIOR)


def solve(
    x: ArrayLike | Sequence[ArrayLike] | GramStatistics,
    y: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    model: str | Path | AbstractModel | Solver = "auto",
    track: Track | None = None,
) -> Float[np.ndarray, "b d"]:
    """The weights of many regressions without intercept, each from its own context.

    Inputs are taken to have variance about one and to be little correlated. With a published model or one of
    your own, weights are taken to have variance about one too, and noise to come from the model's prior; with
    `auto`, labels may have any unit. Work is done in the precision of the data.

    Arguments:
        x: Inputs of shape (contexts, n, d), or one array (n, d) for every context, of any lengths; or the
            statistics of contexts.
        y: Labels of shape (contexts, n), or one array (n,) for every context.
        model: `auto` for the nearest specialist, a published name, a file, or a model.
        track: Shows progress.

    >>> rng = np.random.default_rng(0)
    >>> x, w = rng.normal(size=(1000, 20, 10)), rng.normal(size=(1000, 10))
    >>> y = np.einsum("bnd,bd->bn", x, w) + rng.normal(size=(1000, 20))
    >>> found = solve(x, y, model="diag-7-uniform(0,5)")
    >>> found.shape, bool(np.mean((found - w) ** 2) < 0.11)
    ((1000, 10), True)
    """
    groups, dim, dtype = contexts.groups(x, y, specialists.nearest if is_auto(model) else lambda dim, count: None)
    count = sum(len(group.places) for group in groups)
    weights, replaced = np.zeros((count, dim), dtype), []
    if groups and is_auto(model):
        counts = np.concatenate([group.counts for group in groups])
        if far := specialists.outside(dim, int(counts.min()), int(counts.max())):
            warnings.warn(far, UnsoundWarning, stacklevel=2)
    chosen = [solver(model, dim, int(group.counts[0])) for group in groups]
    parts = [(*pair, part) for pair in zip(chosen, groups, strict=True) for part in contexts.parts(pair[1])]
    numbers = range(len(parts))
    for number in numbers if track is None else track(numbers, len(parts)):
        own, group, part = parts[number]
        weights[group.places[part]], bad = _solve_part(own, group, part)
        replaced.extend(group.places[part][bad])
    if replaced:
        warnings.warn(
            f"On {len(replaced)} of {count} contexts (the first is number {min(replaced)}) the model gives "
            "weights that fit worse than zero; the Bayes predictor answered there.",
            UnsoundWarning,
            stacklevel=2,
        )
    return weights


def _solve_part(
    solver: Solver, group: contexts.Group, part: slice
) -> tuple[Float[np.ndarray, "b d"], Int[np.ndarray, " bad"]]:
    """The weights of a chunk, and which of them are the fallback's."""
    weights, sound = _each(partial(_weights, solver), group, part, None)
    bad = np.flatnonzero(~sound)
    if not bad.size:
        return weights, bad
    weights, rows = np.array(weights), np.arange(len(group.places))[part][bad]
    for start in range(0, len(bad), _FALLBACKS):
        some = slice(start, start + _FALLBACKS)
        safe, finite = _each(partial(_fallback, solver), group, rows[some], float)
        if not finite.all():
            first = group.places[rows[some]][~finite][0]
            raise ValueError(
                f"Context {first} has values that are not finite, or so large that their squares are not."
            )
        with np.errstate(over="ignore"):
            weights[bad[some]] = np.nan_to_num(safe.astype(weights.dtype))  # what is too large becomes the largest
    return weights, bad


def _each(
    function: Callable[[contexts.Data], tuple[Array, Array]],
    group: contexts.Group,
    part: contexts.Part,
    dtype: type | None,
) -> tuple[np.ndarray, np.ndarray]:
    """What a function says of contexts, which are filled up to a power of two: so programs serve many sizes."""
    rows = np.arange(len(group.places))[part]
    more = contexts.power_of_two(len(rows)) - len(rows)
    data = group.read(np.pad(rows, (0, more), mode="edge") if more else part, dtype)
    weights, mark = function(data)
    return np.asarray(weights)[: len(rows)], np.asarray(mark)[: len(rows)]


@jax.jit
def _weights(solver: Solver, data: contexts.Data) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
    stats, unit, _ = _read(solver, data)
    weights, sound = solver.weights(stats)
    weights = weights * unit[:, None]
    return weights, sound & jnp.isfinite(weights).all(axis=-1)


def _fallback(solver: Solver, data: contexts.Data) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
    stats, unit, finite = _read(solver, data)
    return solver.fallback(stats) * unit[:, None], finite


@jax.jit
def _read(solver: Solver, data: contexts.Data) -> tuple[GramStatistics, Float[Array, " b"], Bool[Array, " b"]]:
    """Statistics of contexts, the unit of their labels, and whether they are finite."""
    data, unit = contexts.labels_of_size_one(data) if solver.any_unit else (data, jnp.ones(1))
    stats = contexts.statistics(data)
    return stats, unit.astype(stats.gram.dtype), jnp.isfinite(stats.gram).all(axis=(1, 2))
