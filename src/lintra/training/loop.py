"""The training loop: stages one after the other, in units of work that can be interrupted."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from jaxtyping import Array, Key

from lintra import arguments
from lintra.arguments import KeyLike
from lintra.kernel.precision import in_64_bits
from lintra.models.spec import ModelSpec
from lintra.runtime import forks
from lintra.runtime.progress import SILENT, LastMetrics, Progress
from lintra.training.checkpoints import RunFolder, versions
from lintra.training.memory import require_memory
from lintra.training.recipes import recipe_name
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.result import TrainingResult, assess, plain_key
from lintra.training.selection import Selection, selection_remark
from lintra.training.stage import AbstractStage, Cache, Models, TrainingFailedError
from lintra.training.version import TRAINING_VERSION
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts
from lintra.zoo.model_file import save


def train(
    spec: ModelSpec,
    recipe: AbstractRecipe | None = None,
    *,
    key: KeyLike = 0,
    folder: str | os.PathLike | None = None,
    warm_starts: WarmStarts | None = None,
    cache: Cache | None = None,
    num_sequences: int = 1_000_000,
    throw: bool = True,
    progress: Progress = SILENT,
) -> TrainingResult:
    """Train a model and measure it on fresh sequences.

    Args:
        spec: The model to train.
        recipe: How to train it. `None` (default): `Fast()`.
        key: Randomness of everything, a number or a key. Default: 0.
        folder: Directory for settings, metrics, checkpoints and the model. An interrupted run with the same
            settings is resumed. `None` (default): write nothing to disk.
        warm_starts: Models to start from. Not together with `folder`. `None` (default): none.
        cache: A dictionary in which pools of sequences are kept. Calls with the same dictionary that differ only
            in family and depth share them. `None` (default): nothing is kept.
        num_sequences: Number of fresh sequences on which the result is measured. Default: 1,000,000.
        throw: Whether to raise an error if the model is not sound. Default: yes.
        progress: Told about each unit of work. Default: not shown.

    Returns:
        The model and its loss. With `throw=False` see `is_sound` and `message` of the result. Its `remark` says if
        model selection preferred a smaller model.

    Raises:
        ValueError: If an argument is wrong, or `folder` belongs to another run.
        TrainingFailedError: If training diverges, or, with `throw=True`, if the model is not sound.

    >>> from lintra.problem import NoisyRegression
    >>> result = train(ModelSpec("gd++", 2, NoisyRegression(3, 9, "fixed(1)")), num_sequences=10_000)
    >>> result.model.num_layers, result.loss.mean < 0.05
    (2, True)
    """
    recipe = Fast() if recipe is None else recipe
    warm_starts = NO_WARM_STARTS if warm_starts is None else warm_starts
    _check_types(spec, recipe, warm_starts)
    forks.check_not_forked()
    arguments.whole_number("num_sequences", num_sequences)
    if folder is not None and warm_starts:
        raise ValueError("`warm_starts` are not stored in a run folder: leave out `warm_starts` or `folder`.")
    keys = run_keys(key)
    require_memory(spec, recipe, num_sequences)
    warm_starts.check(spec)
    with in_64_bits():
        run = None
        if folder is not None:
            run = RunFolder(Path(folder), _settings(spec, recipe, key), versions(), progress=progress)
        try:
            stages = recipe.stages(spec, keys[0], warm_starts)
            metrics = LastMetrics(progress, {} if run is None else run.last_metrics)
            model = run_stages(stages, warm_starts, cache, run=run, progress=metrics)[stages[-1].name]
            if run is not None:
                save(model, run.folder / "model.safetensors", noise=str(spec.problem.noise))
            result = assess(model, spec.problem, num_sequences=num_sequences, key=keys[1], progress=progress)
            estimates = metrics.values.get("candidates", {}) if isinstance(stages[-1], Selection) else {}
            result = replace(result, key=plain_key(key), remark=selection_remark(model, estimates))
            if run is not None:
                run.write_result(result.to_row())
        finally:
            if run is not None:
                run.close()
    if throw and not result.is_sound:
        raise TrainingFailedError(f"{result.message} With `throw=False` the model is returned all the same.")
    return result


def run_stages(
    stages: list[AbstractStage],
    warm_starts: WarmStarts = NO_WARM_STARTS,
    cache: Cache | None = None,
    *,
    run: RunFolder | None = None,
    progress: Progress = SILENT,
) -> Models:
    """Run stages one after the other.

    Args:
        stages: The stages.
        warm_starts: Models to start from.
        cache: Prepared data, shared with other calls.
        run: A run folder, from which an interrupted run is resumed. `None` (default): all is kept in memory.
        progress: Told about each unit of work.

    Returns:
        The models of all stages by name.
    """
    arguments.require_64_bits("Training")
    models = {} if run is None else run.models
    started = time.monotonic() - (0.0 if run is None else run.seconds)
    for index, stage in enumerate(stages):
        if run is not None and index < run.stage:
            continue
        state = stage.start(models, warm_starts)
        if run is not None and index == run.stage:
            state = run.state(state)
        data = stage.prepare() if cache is None or stage.cache_key not in cache else cache[stage.cache_key]
        if cache is not None:
            cache[stage.cache_key] = data
        progress.start(stage.name, stage.progress(state)[1])
        while (done := stage.progress(state))[0] < done[1]:
            state = stage.advance(state, data)
            metrics = stage.metrics(state)
            if run is not None:
                seconds = {"seconds": round(time.monotonic() - started, 2)}
                run.log_metrics({"stage": index, "name": stage.name} | metrics | seconds)
                run.checkpoint(index, state, models)
            progress.update(stage.progress(state)[0], **metrics)
        models = models | {stage.name: stage.finish(state)}
        if run is not None:
            run.checkpoint(index + 1, None, models, now=True)
    return models


def run_keys(key: KeyLike) -> tuple[Key[Array, ""], Key[Array, ""]]:
    """The key of the stages of a run, and the key of the sequences on which its model is measured."""
    training_key, assessment_key = jax.random.split(arguments.random_key(key))
    return training_key, assessment_key


def training_key(key: KeyLike) -> Key[Array, ""]:
    """The key of the stages of a run."""
    return run_keys(key)[0]


def _check_types(spec: ModelSpec, recipe: AbstractRecipe, warm_starts: WarmStarts) -> None:
    if not isinstance(spec, ModelSpec):
        raise TypeError(f"`spec` must be a ModelSpec, such as ModelSpec('full', 7, 'uniform(0,5)'), got {spec!r}.")
    if not isinstance(recipe, AbstractRecipe):
        raise TypeError(f"`recipe` must be a recipe, such as Fast() or Paper(), got {recipe!r}.")
    if not isinstance(warm_starts, WarmStarts):
        raise TypeError(f"`warm_starts` must be WarmStarts, such as WarmStarts(smaller=…), got {warm_starts!r}.")


def _settings(spec: ModelSpec, recipe: AbstractRecipe, key: KeyLike) -> dict[str, Any]:
    """Everything that the model follows from."""
    settings = {**spec.settings(), "recipe": recipe_name(recipe), **recipe.settings(), "key": plain_key(key)}
    # A setting, not one of `versions`: runs of other settings are rejected, those of other versions are resumed.
    return settings | {"training_version": TRAINING_VERSION}
