"""DIAG models for other people's data: one for every number of inputs and examples, on labels of unknown unit.

Labels are divided by their root mean square, in training as in use, so a specialist knows nothing of their size.
In these units a model for d inputs and n examples hardly changes with d while n/d stays: so models are grown at
one d for every n/d, and carried from d to d by a few iterations of the same fit.
"""

import hashlib
import json
import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from lintra import zoo
from lintra._version import __version__
from lintra.baselines import AdaptiveRidge, Bayes
from lintra.compiled import cache_folder, keep_compiled_programs
from lintra.evaluation import evaluate
from lintra.models import Diagonal, InOwnUnits, Rescaled
from lintra.storage import load, save
from lintra.training import Task, follow
from lintra.training.growth import DiagonalGrowth
from lintra.training.least_squares import SequenceFit, levenberg_marquardt
from lintra.training.lessons import sample_with_rare
from lintra.training.version import TRAINING_VERSION

DIMS = (1, 2, 3, 5, 8, 12, 20, 32, 50)
RATIOS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
LAYERS = 6
ROOT = 5  # the number of inputs at which models are grown
_LOUDEST = 2.0  # noise, in units of the labels' standard deviation without it: of their variance, 0.2 is signal
_SEQUENCES = 8192
_ITERATIONS = 30
_PIECE = 10


def prior(dim: int) -> str:
    """The noise prior at so many inputs.

    >>> prior(4)
    'uniform(0,4)'
    """
    return f"uniform(0,{_LOUDEST * dim**0.5:.6g})"


def task(dim: int, context: int) -> Task:
    """What a specialist is trained for."""
    return Task("diag", LAYERS, prior(dim), dim=dim, context=context)


def name(dim: int, context: int) -> str:
    """The name of a published specialist."""
    return f"diag-{LAYERS}-n{context}-d{dim}"


def contexts(dim: int) -> list[int]:
    """Numbers of examples for which there are specialists.

    >>> contexts(1), contexts(5)
    ([4, 8, 16, 32], [4, 5, 10, 20, 40, 80, 160])
    """
    return sorted({at_ratio(ratio, dim) for ratio in RATIOS})


def at_ratio(ratio: float, dim: int) -> int:
    """The number of examples for so many an input: at least four."""
    return max(math.ceil(ratio * dim), 4)


def adapted(model: Diagonal) -> InOwnUnits:
    """A specialist as it is used: at any context length, on labels of any size."""
    return InOwnUnits(Rescaled(model))


def published() -> zoo.Zoo:
    """The specialists that come with lintra."""
    return zoo.published("specialists.safetensors")


@lru_cache(10_000)
def nearest(dim: int, context: int) -> str:
    """The published specialist that is nearest, in n/d first of all, and in d.

    >>> nearest(10, 21)
    'diag-6-n24-d12'
    """
    cards = published().cards

    def distance(name: str) -> tuple[float, float]:
        size = math.log(cards[name]["dim"] / dim)
        ratio = math.log(cards[name]["context"] / context) - size
        return ratio**2 + 0.25 * size**2, size

    return min(cards, key=distance)


def load_nearest(dim: int, context: int) -> Diagonal:
    """That specialist, for the asked number of inputs."""
    model = published().load(nearest(dim, context))
    assert isinstance(model, Diagonal)
    return model.at(dim)


def outside(dim: int, fewest: int, most: int) -> str:
    """How far contexts are from all that specialists were trained for, as a sentence; empty if they are not.

    >>> outside(10, 20, 320)
    ''
    """
    sentences, least, top = [], at_ratio(RATIOS[0], dim), at_ratio(RATIOS[-1], dim)
    if dim > DIMS[-1]:
        sentences.append(f"{dim} inputs are {dim / DIMS[-1]:.1f} times the largest number trained for, {DIMS[-1]}")
    if fewest < least:
        sentences.append(f"{fewest} examples of {dim} inputs are fewer than the least trained for, {least}")
    if most > top:
        sentences.append(
            f"{most} examples of {dim} inputs are {most / top:.1f} times the most trained for, {top}, and with "
            "far more than those least squares is better"
        )
    return f"{'; '.join(sentences)}. The nearest specialist answers." if sentences else ""


def grow(context: int, key: Key[Array, ""]) -> Diagonal:
    """A specialist from nothing, at `ROOT` inputs."""
    stage = DiagonalGrowth("diag", key, task(ROOT, context), own_units=True, hops=4)
    model = follow([stage], {})["diag"]
    assert isinstance(model, Diagonal)
    return model


def specialise(
    dim: int,
    context: int,
    say: Callable[[str], object] | None = None,
    *,
    key: Key[Array, ""] | None = None,
) -> Diagonal:
    """A specialist for exactly this many inputs and examples: from the user's cache, or trained and kept there.

    A file of the cache that cannot be read is made again; if none can be written, a warning says so.

    Arguments:
        dim: Number of inputs.
        context: Number of examples.
        say: Told how far the training is. `None` (default): say nothing.
        key: Randomness of the training. `None` (default): `jax.random.key(0)`, so two calls give the same model.

    Returns:
        The specialist. Each key has its own file in the cache.
    """
    key = jax.random.key(0) if key is None else key
    path = _cache_path(dim, context, key)
    with suppress(OSError, ValueError):
        model = load(path)
        if isinstance(model, Diagonal) and (model.dim, model.context) == (dim, context):
            return model
    model = carry(load_nearest(dim, context), dim, context, key, say=say)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(model, path, noise=prior(dim))
    except OSError as error:
        warnings.warn(f"The specialist could not be kept for the next time: {error}.", stacklevel=2)
    return model


def _cache_path(dim: int, context: int, key: Key[Array, ""]) -> Path:
    """The file of a specialist in the user's cache, named by its size and a hash of what its numbers depend on."""
    content = {
        "start": published().card(nearest(dim, context))["sha256"],  # the model that is fitted further
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "version": __version__,
        "training_version": TRAINING_VERSION,
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / "specialists" / f"{name(dim, context)}-{digest}.safetensors"


def carry(
    model: Diagonal,
    dim: int,
    context: int,
    key: Key[Array, ""],
    sequences: int = _SEQUENCES,
    say: Callable[[str], object] | None = None,
) -> Diagonal:
    """The model, fitted further for another number of inputs and examples."""
    pool_key, signs_key = jax.random.split(key)
    problem = task(dim, context).problem
    pool = sample_with_rare(problem, pool_key, objective="bayes", size=sequences).in_own_units()
    numbers = jnp.concatenate([model.p, model.q], axis=-1)
    fit = SequenceFit.of(pool, signs_key, bend=100.0)
    for done in range(0, _ITERATIONS, _PIECE):
        numbers, value = levenberg_marquardt(fit, numbers, jnp.ones_like(numbers), _PIECE)
        if say is not None:
            say(f"specialist for n = {context}, d = {dim}: {done + _PIECE}/{_ITERATIONS}, distance {value:.4g}")
    return Diagonal(numbers[..., :2], numbers[..., 2:], context, dim)


def train_ratio(ratio: float, seed: int = 0) -> dict[str, tuple[Diagonal, zoo.Card]]:
    """All specialists of one n/d: grown at `ROOT` inputs, carried from there to fewer and to more."""
    keep_compiled_programs()
    key = jax.random.fold_in(jax.random.key(seed), round(64 * ratio))
    at = {dim: at_ratio(ratio, dim) for dim in DIMS}
    root = grow(at[ROOT], key)
    entries = {}
    for way in (sorted(d for d in DIMS if d >= ROOT), sorted((d for d in DIMS if d < ROOT), reverse=True)):
        model = root
        for dim in way:
            step = jax.random.fold_in(key, dim)
            sequences = 2048 if dim > ROOT * 4 else _SEQUENCES  # a larger d needs fewer
            model = model if dim == ROOT else carry(model, dim, at[dim], step, sequences)
            entries[name(dim, at[dim])] = model, card(model, jax.random.fold_in(step, 1))
    return entries


def card(model: Diagonal, key: Key[Array, ""], num_sequences: int = 65_536) -> zoo.Card:
    """What a specialist's card says: its adjusted loss on the paper's problem, beside AdaRR and the floor."""
    problem = task(model.dim, model.context).problem
    predictors: dict[str, Any] = {"specialist": adapted(model), "bayes": Bayes(problem.noise)}
    if model.context > model.dim + 1:
        predictors["ada-ridge"] = AdaptiveRidge()
    count = num_sequences // model.dim
    measured = evaluate(predictors, problem, num_sequences=count, key=key)
    losses = {method: measured.adjusted(method).mean for method in predictors}
    return {
        "noise": str(problem.noise),
        **measured.adjusted("specialist").as_adjusted_loss(),
        "bayes_floor": losses["bayes"],
        "ada_ridge": losses.get("ada-ridge"),
        "worst": measured.tail("specialist").worst,
        "sequences": count,
    }
