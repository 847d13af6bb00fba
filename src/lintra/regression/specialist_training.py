"""Specialists grown, transferred to other sizes, cached and measured."""

import hashlib
import json
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from lintra import zoo
from lintra._version import __version__
from lintra.baselines.bayes import Bayes
from lintra.baselines.ridge import AdaptiveRidge
from lintra.evaluation.adjusted_loss import evaluate
from lintra.models.diagonal import Diagonal
from lintra.regression.specialists import (
    DIMS,
    adapted,
    at_ratio,
    load_nearest,
    name,
    nearest,
    prior,
    published,
    task,
)
from lintra.runtime.cache import cache_folder, keep_compiled_programs
from lintra.training.growth import DiagonalGrowth
from lintra.training.least_squares import SequenceFit, levenberg_marquardt
from lintra.training.loop import follow
from lintra.training.sampling import sample_with_rare
from lintra.training.version import TRAINING_VERSION
from lintra.zoo.model_file import load, save

ROOT = 5  # the number of inputs at which models are grown

_SEQUENCES = 8192
_ITERATIONS = 30
_PIECE = 10


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
