"""What tests of training share: small runs, and ways to interrupt and to observe them."""

from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import pytest

from lintra.models import Full
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Progress
from lintra.training import ModelSpec, Paper, WarmStarts
from lintra.training.checkpoints import RunFolder
from lintra.training.recipes.fast import Fast

KEY = jax.random.key(0)
PROBLEM = NoisyRegression(dim=3, num_examples=6, noise="choice(1,3)")
SPEC = ModelSpec("diag", 2, PROBLEM)
MODEL = Full.random(2, dim=3, num_examples=6, scale=0.1, key=jax.random.key(1))
QUICK = Paper(num_starts=2, num_steps=400, learning_rate=3e-3, batch_size=64, scale=0.05)
SMALL = Fast(num_starts=2, num_steps=200, pool_size=8192, num_blocks=8)


@contextmanager
def rounds_of_100_steps():
    """Rounds of 100 steps and a checkpoint after each, so that small runs have several."""
    with pytest.MonkeyPatch.context() as patch:
        stages = Paper.stages

        def shorter(self, spec, key, warm_starts=None):
            stage: Any = stages(self, spec, key)[0]
            return [replace(stage, validate_every=100, source=replace(stage.source, num_validation=8192))]

        patch.setattr(Paper, "stages", shorter)
        start = RunFolder.__init__
        patch.setattr(RunFolder, "__init__", lambda *args, **kwargs: start(*args, **(kwargs | {"interval": 0.0})))
        yield


class InterruptedHereError(Exception):
    pass


class InterruptAfter(Progress):
    """Interrupts a run after a number of units of work."""

    def __init__(self, num_units):
        self.left = num_units

    def update(self, done, **fields):
        if self.left == 0:
            raise InterruptedHereError
        self.left -= 1


class Messages(Progress):
    """Collects messages."""

    def __init__(self):
        self.texts = []

    def message(self, text):
        self.texts.append(text)


def grow(stage, **warm_starts):
    """Run a stage to its end and return its model and the loss at every depth."""
    data, state, losses = stage.prepare(), stage.start({}, WarmStarts(**warm_starts)), []
    while (done := stage.progress(state))[0] < done[1]:
        state = stage.advance(state, data)
        losses.append(stage.metrics(state)["validation_loss"])
    return stage.finish(state), losses
