"""Specialists grown, transferred to other sizes, cached and measured."""

import hashlib
import json
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from lintra import arguments, zoo
from lintra._version import __version__
from lintra.arguments import KeyLike, random_key
from lintra.baselines.bayes import Bayes
from lintra.baselines.ridge import AdaptiveRidge
from lintra.evaluation.adjusted_loss import evaluate
from lintra.models.diagonal import Diagonal
from lintra.regression.specialists import (
    DIMS,
    adapt,
    at_ratio,
    load_nearest,
    name,
    nearest,
    prior,
    published,
    specialist_spec,
)
from lintra.runtime.cache import cache_folder
from lintra.runtime.progress import SILENT, Progress
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.least_squares import SequenceLeastSquares, levenberg_marquardt
from lintra.training.loop import run_stages
from lintra.training.perturbations import HalfScaledInputs
from lintra.training.sampling import sample_pool
from lintra.training.version import TRAINING_VERSION
from lintra.zoo.model_file import load, save

ROOT = 5
"""Number of inputs at which specialists are grown."""

_NUM_SEQUENCES = 8192
_ITERATIONS = 30  # of a transfer
_UPDATE_EVERY = 10  # iterations


class PrintedProgress(Progress):
    """Prints a line for each update."""

    def start(self, text: str, total: int | None = None) -> None:
        """Keep the text for the lines."""
        self._text, self._total = text, total

    def update(self, done: int, **fields: Any) -> None:
        """Print how far it is, with the loss."""
        print(f"{self._text}: {done}/{self._total}, loss {fields['loss']:.4g}")


def grow(num_examples: int, *, key: Key[Array, ""]) -> Diagonal:
    """Train a specialist for `ROOT` inputs from random starts."""
    stage = DiagonalGrowth("diag", key, specialist_spec(ROOT, num_examples), is_unit_blind=True, num_restarts=4)
    model = run_stages([stage])["diag"]
    assert isinstance(model, Diagonal)
    return model


def specialise(
    dim: int,
    num_examples: int,
    *,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> Diagonal:
    """A specialist for this number of inputs and examples, from the user's cache or trained and stored there.

    A file of the cache that cannot be read is made again. If it cannot be written, there is a warning.

    Args:
        dim: Number of inputs.
        num_examples: Number of examples.
        key: Randomness of the training, a number or a key. Each key has its own file in the cache. Default: 0.
        progress: Told about the training. Default: not shown.

    Returns:
        The specialist.
    """
    key = random_key(key)
    path = _cache_path(dim, num_examples, key)
    with suppress(OSError, ValueError):
        model = load(path)
        if isinstance(model, Diagonal) and (model.dim, model.num_examples) == (dim, num_examples):
            return model
    model = transfer(load_nearest(dim, num_examples), dim, num_examples, key=key, progress=progress)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(model, path, noise=prior(dim))
    except OSError as error:
        warnings.warn(f"The specialist could not be kept for the next time: {error}.", stacklevel=2)
    return model


def _cache_path(dim: int, num_examples: int, key: Key[Array, ""]) -> Path:
    """File of a specialist in the user's cache, named by its size and a hash of everything it depends on."""
    content = {
        "start": published().card(nearest(dim, num_examples))["sha256"],  # the model that is fitted further
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "version": __version__,
        "training_version": TRAINING_VERSION,
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / "specialists" / f"{name(dim, num_examples)}-{digest}.safetensors"


def transfer(
    model: Diagonal,
    dim: int,
    num_examples: int,
    *,
    num_sequences: int = _NUM_SEQUENCES,
    key: Key[Array, ""],
    progress: Progress = SILENT,
) -> Diagonal:
    """Fit a model further, for another number of inputs and examples.

    Args:
        model: The model to start from.
        dim: Number of inputs.
        num_examples: Number of examples.
        num_sequences: Number of sequences to fit to, a multiple of 2,048. Default: 8,192.
        key: Randomness.
        progress: Told about the loss every ten iterations. Default: not shown.
    """
    arguments.require_64_bits("Training")
    pool_key, signs_key = jax.random.split(key)
    problem = specialist_spec(dim, num_examples).problem
    settings = {"objective": "bayes", "num_sequences": num_sequences, "perturbation": HalfScaledInputs()}
    pool = sample_pool(problem, **settings, key=pool_key).unit_blind()
    parameters = jnp.concatenate([model.p, model.q], axis=-1)
    fit = SequenceLeastSquares.from_batch(pool, signs_key, cauchy_scale=100.0)
    progress.start(f"specialist for n = {num_examples}, d = {dim}", _ITERATIONS)
    for done in range(0, _ITERATIONS, _UPDATE_EVERY):
        parameters, value = levenberg_marquardt(fit, parameters, jnp.ones_like(parameters), _UPDATE_EVERY)
        progress.update(done + _UPDATE_EVERY, loss=float(value))
    return Diagonal(parameters[..., :2], parameters[..., 2:], num_examples, dim)


def train_ratio(ratio: float, *, key: KeyLike = 0) -> dict[str, tuple[Diagonal, zoo.Card]]:
    """Train all specialists of one n/d: grown at `ROOT` inputs, then transferred to fewer and to more."""
    key = jax.random.fold_in(random_key(key), round(64 * ratio))
    at = {dim: at_ratio(ratio, dim) for dim in DIMS}
    root = grow(at[ROOT], key=key)
    entries = {}
    for way in (sorted(d for d in DIMS if d >= ROOT), sorted((d for d in DIMS if d < ROOT), reverse=True)):
        model = root
        for dim in way:
            step = jax.random.fold_in(key, dim)
            num_sequences = 2048 if dim > ROOT * 4 else _NUM_SEQUENCES  # a larger d needs fewer
            if dim != ROOT:
                model = transfer(model, dim, at[dim], num_sequences=num_sequences, key=step)
            entries[name(dim, at[dim])] = model, card(model, key=jax.random.fold_in(step, 1))
    return entries


def card(model: Diagonal, *, num_sequences: int = 65_536, key: Key[Array, ""]) -> zoo.Card:
    """A specialist's card: its adjusted loss on the paper's problem, beside those of AdaRR and Bayes."""
    problem = specialist_spec(model.dim, model.num_examples).problem
    predictors: dict[str, Any] = {"specialist": adapt(model), "bayes": Bayes(problem.noise)}
    if model.num_examples > model.dim + 1:
        predictors["ada-ridge"] = AdaptiveRidge()
    num_sequences = num_sequences // model.dim
    comparison = evaluate(predictors, problem, num_sequences=num_sequences, key=key)
    losses = {method: comparison.adjusted(method).mean for method in predictors}
    return {
        "noise": str(problem.noise),
        **comparison.adjusted("specialist").as_adjusted_loss(),
        "bayes_floor": losses["bayes"],
        "ada_ridge": losses.get("ada-ridge"),
        "worst": comparison.tail("specialist").worst,
        "sequences": num_sequences,
    }
