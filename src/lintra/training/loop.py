"""The training loop: stages one after the other, each in small pieces of work, in a run folder or without one."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lintra import arguments
from lintra._version import __version__
from lintra.kernel import library
from lintra.models.base import AbstractModel
from lintra.models.spec import Task
from lintra.runtime import forks
from lintra.runtime.progress import Report, Track
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.recipes.paper import Paper
from lintra.training.result import Trained, judge
from lintra.training.run_folder import Run
from lintra.training.sizes import require_memory
from lintra.training.stage import AbstractStage, Models, Shelf
from lintra.training.version import TRAINING_VERSION
from lintra.zoo.model_file import save

RECIPES: dict[str, type[AbstractRecipe]] = {"fast": Fast, "paper": Paper}


def train(
    task: Task,
    recipe: AbstractRecipe | None = None,
    *,
    seed: int = 0,
    folder: str | os.PathLike | None = None,
    known: Mapping[str, AbstractModel] | None = None,
    shelf: Shelf | None = None,
    num_sequences: int = 1_000_000,
    report: Report | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    track: Track | None = None,
) -> Trained:
    """Train a model and measure it on fresh sequences.

    Arguments:
        task: What to train.
        recipe: How to train it; `Fast()` by default.
        seed: Seed of everything.
        folder: A run folder; a run that was interrupted there goes on. Nothing to keep all in memory.
        known: Models to start from: `shallower`, of the same family with one layer less, and `gd++` and `diag`
            with as many layers. Not together with `folder`.
        shelf: Keeps pools of sequences; tasks that are given the same one and differ only in family and depth
            share them.
        num_sequences: Fresh sequences to measure the result on.
        report: Told after every piece of work.
        say: Told what people should know.
        track: Shows the progress of the measurement.

    >>> trained = train(Task("gd++", 2, "fixed(1)", dim=3, context=9), num_sequences=10_000)
    >>> trained.model.num_layers, trained.loss.mean < 0.05
    (2, True)
    """
    recipe = Fast() if recipe is None else recipe
    if not isinstance(task, Task):
        raise TypeError(f"`task` must be a Task, such as Task('full', 7, 'uniform(0,5)'), got {task!r}.")
    if not isinstance(recipe, AbstractRecipe):
        raise TypeError(f"`recipe` must be a recipe, such as Fast() or Paper(), got {recipe!r}.")
    forks.check_not_forked()
    arguments.whole_number("num_sequences", num_sequences)
    arguments.whole_number("seed", seed, minimum=0)
    arguments.require_64_bits()
    require_memory(task, recipe, num_sequences)
    training_key, judging_key = jax.random.split(jax.random.key(seed))
    known = _checked(known or {}, task)
    stages = recipe.stages(task, training_key, tuple(known))
    run = None
    if folder is not None and known:
        raise ValueError("`known` models are not kept in a run folder: leave out `known` or `folder`.")
    if folder is not None:
        run = Run(Path(folder), _settings(task, recipe, seed), versions(), say=say)
    try:
        model = follow(stages, known, shelf, run=run, report=report)[stages[-1].name]
        if run is not None:
            save(model, run.folder / "model.safetensors", noise=task.noise)
        trained = judge(model, task.problem, num_sequences=num_sequences, key=judging_key, track=track)
        if run is not None:
            run.conclude(trained.figures())
        return trained
    finally:
        if run is not None:
            run.close()


def _checked(known: Mapping[str, AbstractModel], task: Task) -> Models:
    """See that known models are what their names say."""
    shapes = {
        "shallower": (task.variant, task.layers - 1, task.heads),
        "gd++": ("gd++", task.layers, 1),
        "diag": ("diag", task.layers, task.heads),
        "fewer-heads": (task.variant, task.layers, task.heads - 1),
    }
    for name, model in known.items():
        arguments.one_of("known", name, tuple(shapes))
        expected = *shapes[name], task.dim, task.context
        found = model.family, model.num_layers, model.num_heads, model.dim, model.context
        if found != expected:
            raise ValueError(
                f"`known` has as {name!r} a model with family, layers, heads, dim, context = {found}, "
                f"where {expected} is needed."
            )
    if "shallower" in known and task.variant != "gd++" and not {"gd++", "diag"} & set(known):
        raise ValueError("`known` has a shallower model but none of a smaller family: give `gd++` or `diag` too.")
    return dict(known)


def follow(
    stages: list[AbstractStage],
    models: Models,
    shelf: Shelf | None = None,
    *,
    run: Run | None = None,
    report: Report | None = None,
) -> Models:
    """Go through stages one after the other, and return the models that are known then."""
    models = models if run is None else run.models
    begun = time.monotonic() - (0.0 if run is None else run.seconds)
    for index, stage in enumerate(stages):
        if run is not None and index < run.stage:
            continue
        state = stage.start(models)
        if run is not None and index == run.stage:
            state = run.state(state)
        material = stage.prepare() if shelf is None or stage.material not in shelf else shelf[stage.material]
        if shelf is not None:
            shelf[stage.material] = material
        while (done := stage.progress(state))[0] < done[1]:
            state = stage.advance(state, material)
            metrics = stage.metrics(state)
            if run is not None:
                seconds = {"seconds": round(time.monotonic() - begun, 2)}
                run.record({"stage": index, "name": stage.name} | metrics | seconds)
                run.checkpoint(index, state, models)
            if report is not None:
                report(stage.name, stage.progress(state), metrics)
        models = models | {stage.name: stage.finish(state)}
        if run is not None:
            run.checkpoint(index + 1, {}, models, now=True)
    return models


def versions() -> dict[str, str]:
    """The versions of everything that has a say in the last bits of a result."""
    return {
        "lintra": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "kernel": library.instruction_set() or "plain JAX",
    }


def _settings(task: Task, recipe: AbstractRecipe, seed: int) -> dict[str, Any]:
    names = {kind: name for name, kind in RECIPES.items()}
    name = names.get(type(recipe), type(recipe).__name__)
    own = {**asdict(task), "recipe": name, **recipe.settings(), "seed": seed}
    # A setting, not one of `versions`: runs of other settings are rejected, those of other versions are resumed.
    return own | {"training_version": TRAINING_VERSION}
