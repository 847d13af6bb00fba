"""Weights of many small regressions, chunk by chunk, on the native kernel.

A deep linear transformer is a polynomial of high degree. On a context unlike those of its training its weights
may be wrong, or diverge. There the Bayes predictor for the noise prior of the training answers, and a warning
names the causes and the remedies (`lintra.regression.soundness`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.regression import contexts, specialists, standardisation
from lintra.regression.contexts import Chunk
from lintra.regression.solver import Answer, Solver, choose_solver, is_auto, warn_about
from lintra.regression.soundness import Cause
from lintra.regression.standardisation import Units
from lintra.runtime import forks
from lintra.runtime.progress import SILENT, Progress
from lintra.statistics import examples
from lintra.statistics.gram import GramStatistics

_MAX_BYTES = 2**24  # of a chunk: small enough that memory is used again


def solve(
    x: ArrayLike | Sequence[ArrayLike] | GramStatistics,
    y: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    model: str | Path | AbstractModel | Solver = "auto",
    standardise: bool = False,
    fit_intercept: bool = False,
    progress: Progress = SILENT,
) -> Float[np.ndarray, "b weights"]:
    """Compute the weights of many regressions, each from its own context.

    Unless `standardise` is set, inputs are assumed to have variance about one. With a published model or one of
    your own, weights are assumed to have variance about one too, and noise to come from the model's prior. With
    `auto`, labels may have any unit. Where a context is unlike those of training and the model's weights are not
    sound, the Bayes predictor answers. Computations are in the precision of the data.

    Args:
        x: Inputs, shape (contexts, n, d); or a list with one array (n, d) for each context, of any lengths; or the
            statistics of contexts.
        y: Labels, shape (contexts, n); or a list with one array (n,) for each context. `None` (default): `x` is
            statistics.
        model: `auto` (default) for the nearest specialist, a published name, a model file, a model, or a solver.
        standardise: Whether to divide the inputs of each context by their standard deviations there, or by their
            root mean squares if `fit_intercept` is `False`. Default `False`.
        fit_intercept: Whether to centre the inputs and labels of each context, and return intercepts too.
            Default `False`.
        progress: Told after each chunk. Default `SILENT`.

    Returns:
        Weights of shape (contexts, d), for the inputs as given, in the precision of the data. With
        `fit_intercept` they have shape (contexts, d+1), with the intercept in the last column.

    Raises:
        ValueError: If shapes do not match, a value is not finite, or statistics are to be centred.

    Warns:
        UnsoundWarning: If the Bayes predictor answered, with causes and remedies; or if n or d is outside of what
            the specialists were trained for.

    >>> rng = np.random.default_rng(0)
    >>> x, w = rng.normal(size=(1000, 20, 10)), rng.normal(size=(1000, 10))
    >>> y = np.einsum("bnd,bd->bn", x, w) + rng.normal(size=(1000, 20))
    >>> weights = solve(x, y, model="diag-7-uniform(0,5)")
    >>> weights.shape, bool(np.mean((weights - w) ** 2) < 0.11)
    ((1000, 10), True)
    """
    forks.check_not_forked()
    if fit_intercept and isinstance(x, GramStatistics):
        raise ValueError(
            "`fit_intercept` needs the examples: a Gram matrix does not have the means of its inputs."
        )
    grouped = contexts.group_contexts(x, y, by=specialists.nearest if is_auto(model) else lambda dim, n: None)
    if grouped.groups and is_auto(model):
        num_examples = grouped.num_examples
        specialists.warn_about_range(grouped.dim, int(num_examples.min()), int(num_examples.max()))
    weights = np.zeros((grouped.num_contexts, grouped.dim + fit_intercept), grouped.dtype)
    fallback: dict[int, Cause] = {}
    progress.start("contexts", sum(len(contexts.chunk_rows(group, _MAX_BYTES)) for group in grouped.groups))
    done = 0
    with in_64_bits():
        for group in grouped.groups:
            solver = choose_solver(model, grouped.dim, int(group.data.num_examples[0]))
            for chunk in contexts.padded_chunks(group, _MAX_BYTES):
                weights[chunk.indices], causes = _solve_chunk(
                    solver, chunk, standardise=standardise, centre=fit_intercept
                )
                fallback |= {int(chunk.indices[row]): cause for row, cause in causes.items()}
                done += 1
                progress.update(done)
    warn_about(Answer(weights, None, fallback))
    return weights


@dataclass(frozen=True)
class _Settings:
    """How data is brought into the units of training: the arguments of `standardisation.to_units`."""

    standardise: bool
    centre: bool
    scale_labels: bool


def _solve_chunk(
    solver: Solver, chunk: Chunk, *, standardise: bool, centre: bool
) -> tuple[Float[np.ndarray, "b weights"], dict[int, Cause]]:
    """Return the weights of a chunk, and the causes by row where the Bayes predictor answered."""
    settings = _Settings(standardise, centre, solver.is_unit_blind)
    units, stats = _read(settings, chunk.data)
    answer = solver.answer(stats, centred=centre, exact=partial(_read_exactly, settings, chunk))
    fallback = {row: cause for row, cause in answer.fallback.items() if row < chunk.num_real}
    weights = np.asarray(_to_data_units(units, answer.weights, centre))[: chunk.num_real]
    if fallback and stats.gram.dtype != float:
        # Units of contexts unlike those of training may be too small or too large for 32 bits.
        rows = np.fromiter(fallback, int)
        padded = contexts.pad_rows(rows)
        units, _ = _read(settings, contexts.take(chunk.data, padded, float))
        weights = np.array(weights)
        weights[rows] = np.asarray(_to_data_units(units, answer.weights[padded], centre))[: len(rows)]
    with np.errstate(over="ignore"):
        weights = weights.astype(stats.gram.dtype, copy=False)
    # A value that is too large for the data's precision becomes the largest.
    return weights if np.isfinite(weights).all() else np.nan_to_num(weights), fallback


def _read_exactly(settings: _Settings, chunk: Chunk, rows: np.ndarray) -> GramStatistics:
    """Return the statistics of some contexts in 64 bits, or raise if they are not finite."""
    _, stats = _read(settings, contexts.take(chunk.data, rows, float))
    finite = np.isfinite(np.asarray(stats.gram)).all(axis=(1, 2))
    if not finite.all():
        index = chunk.indices[min(rows[~finite][0], chunk.num_real - 1)]
        raise ValueError(
            f"Context {index} has values that are not finite, or so large that their squares are not."
        )
    return stats


@partial(jax.jit, static_argnums=0)
def _read(settings: _Settings, data: examples.Data) -> tuple[Units, GramStatistics]:
    """Return the units of contexts, and their statistics in the units of training."""
    data, units = standardisation.to_units(
        data, standardise=settings.standardise, centre=settings.centre, scale_labels=settings.scale_labels
    )
    return units, examples.statistics(data)


@partial(jax.jit, static_argnums=2)
def _to_data_units(units: Units, weights: Float[Array, "b d"], intercept: bool) -> Float[Array, "b weights"]:
    """Return weights, with the intercept if it is wanted, for the data as it was given, in 64 bits."""
    return jax.tree.map(lambda leaf: leaf.astype(float), units).inverse(weights, intercept=intercept)
