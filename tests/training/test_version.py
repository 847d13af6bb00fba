"""Numbers of tiny trained models, which change only together with `TRAINING_VERSION`.

If a test of numbers fails and training was meant to change: raise `TRAINING_VERSION` in
`src/lintra/training/version.py` by one, set `VERSION` here to the same number, and replace the numbers by those
that pytest prints. If training was not meant to change, the code is wrong: correct it.

The numbers agree to 1e-7 between the kernel's instruction sets, plain JAX, and XLA without AVX.
"""

import json
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Progress
from lintra.training import Fast, ModelSpec, TrainingFailedError, loop, run_stages, train
from lintra.training.descent.soap import scale_by_soap
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.growth.random_restarts import perturbations
from lintra.training.starts import RandomStarts
from lintra.training.version import TRAINING_VERSION

VERSION = 1  # of the numbers below
KEY = jax.random.key(0)
SPEC = ModelSpec("diag", 2, NoisyRegression(2, 6, "choice(1,3)"))
ADVICE = "Read the docstring of this file: was training meant to change?"


def assert_pinned(found, expected):
    found = np.ravel(found)
    message = f"{ADVICE} The numbers are {[float(f'{value:.9f}') for value in found]}."
    assert found.shape == np.shape(expected), message
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=message)


def test_the_pinned_numbers_are_of_this_training_version():
    assert TRAINING_VERSION == VERSION, ADVICE


def test_numbers_of_a_grown_gdpp():
    stage = GDPlusPlusGrowth("gd++", KEY, replace(SPEC, family="gd++"), num_restarts=3)
    model: Any = run_stages([stage])["gd++"]
    assert_pinned(model.rates, [-0.25325329, -0.251404883, -0.1, -0.743494714])


def test_numbers_of_perturbations():
    """Apart, since a search that finds no better fit leaves no trace in the model."""
    stage = GDPlusPlusGrowth("gd++", KEY, SPEC)
    factors, orders = zip(*perturbations(stage.restart_key, 4, (3, 1, 1)), strict=True)
    assert_pinned(factors[:2], [1.672182168, 1.609155582, 1.136523311, 1.057209872, 0.928812552, 0.973242916])
    assert_pinned(orders, [0, 1, 2, 2, 1, 0, 0, 1, 2, 0, 1, 2])


def test_numbers_of_a_grown_diag():
    model: Any = run_stages([DiagonalGrowth("diag", KEY, SPEC, num_validation=8192, num_restarts=2)])["diag"]
    assert_pinned(model.p, [-0.083151068, -0.129225248, 0.15, -0.677746874])
    assert_pinned(model.q, [2.533689297, 0.183495779, 1.798722486, 0.007786378])


def test_numbers_of_full_after_a_few_steps():
    """With Adam: SOAP's eigenvectors of slopes of low rank are arbitrary, and rounding chooses among them."""
    spec = replace(SPEC, family="full")
    stage: Any = Fast(pool_size=8192).stages(spec, KEY)[2]
    starts = RandomStarts(spec, 2, scale=0.1, label_scale=stage.source.label_scale)
    source = replace(stage.source, num_validation=8192, num_widened=1024, dtype="float64")
    small = {"num_steps": 30, "validate_every": 15}
    model: Any = run_stages([replace(stage, starts=starts, source=source, optimiser="adam", **small)])["full"]
    assert_pinned(
        model.p[:, :, -1], [-0.293028339, 0.019503949, 0.158682835, -0.587710324, -0.063177108, 0.115008391]
    )
    assert_pinned(
        model.q[0],
        [
            -0.081535739,
            -0.001351376,
            -0.005367583,
            0.026328242,
            -0.129356133,
            -0.019244438,
            0.021532659,
            -0.001502256,
            -0.000309423,
        ],
    )


def test_numbers_of_soap_on_given_slopes():
    """More steps than lie between two computations of the eigenvectors."""
    transform, total = scale_by_soap(), jnp.zeros((3, 3))
    state = transform.init(total)
    update = jax.jit(transform.update)
    for step in range(25):
        move, state = update(jax.random.normal(jax.random.fold_in(KEY, step), (3, 3)), state)
        total = total + move
    assert_pinned(
        total,
        [
            3.882873234,
            1.893078661,
            1.629819576,
            8.637071038,
            3.008039466,
            -0.169978329,
            -0.625608087,
            6.976147082,
            -10.866597264,
        ],
    )


def test_the_constants_of_the_fast_recipe():
    """Those that are no settings of the recipe, and so in no hash."""
    stages: list[Any] = Fast().stages(replace(SPEC, family="full", num_layers=4), KEY)
    assert [stage.name for stage in stages] == ["gd++", "start", "full", "selected"], ADVICE
    found = [
        [
            *(stage.num_steps, stage.schedule.learning_rate, stage.schedule.warmup_steps),
            *(stage.source.batch_size, stage.source.pool_size, stage.source.num_widened),
            *(stage.guard.clip_norm, stage.guard.max_norm, stage.source.num_validation, stage.optimiser),
        ]
        for stage in stages[1:3]
    ]
    assert found == [
        [1600, 3e-2, 200, 256, 65_536, 1311, 0.25, 0.01, 16_384, "soap"],
        [6000, 2e-2, 50, 1024, 393_216, 7864, 0.25, 0.01, 16_384, "soap"],
    ], ADVICE
    growth = [GDPlusPlusGrowth("gd++", KEY, SPEC), DiagonalGrowth("diag", KEY, SPEC)]
    assert [(stage.num_restarts, stage.screening_steps, stage.refinement_steps) for stage in growth] == [
        (200, 60, 0),
        (24, 8, 25),
    ], ADVICE


def test_a_run_of_another_training_version_is_not_resumed(tmp_path, monkeypatch):
    spec = replace(SPEC, family="gd++")

    class Interrupt(Progress):
        def update(self, done, **fields):
            raise TrainingFailedError("interrupted")

    def resume():
        return train(spec, folder=tmp_path, num_sequences=100)

    with pytest.raises(TrainingFailedError, match="interrupted"):
        train(spec, folder=tmp_path, progress=Interrupt())
    with monkeypatch.context() as patch:
        patch.setattr(loop, "TRAINING_VERSION", TRAINING_VERSION + 1)
        with pytest.raises(
            ValueError, match=rf"training_version = {TRAINING_VERSION}, not {TRAINING_VERSION + 1}"
        ):
            resume()
    path = tmp_path / "settings.json"
    written = path.read_text()
    content = json.loads(written)
    del content["settings"]["training_version"]  # as before there was such a number
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="training_version = None"):
        resume()
    path.write_text(written)
    assert resume().model.num_layers == 2
