import ast
import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lintra
from lintra.models import FAMILIES, Diagonal, Full
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.files import json_safe
from lintra.runtime.progress import Progress
from lintra.sweep import Cell
from lintra.training import ModelSpec, Paper, TrainingFailedError, WarmStarts, assess, train
from lintra.training.descent.rollback import Rollback
from lintra.training.recipes.fast import Fast
from lintra.training.run_folder import RunFolder
from lintra.training.selection import IGNORED_PROBABILITY, Selection
from lintra.training.starts import RandomAndWarmStarts, RandomStarts
from lintra.zoo import model_file, tensors

SPEC = ModelSpec("diag", 2, NoisyRegression(3, 6, "choice(1,3)"))
QUICK = Paper(num_starts=2, num_steps=400, learning_rate=3e-3, batch_size=64, scale=0.05)
SMALL = Fast(num_starts=2, num_steps=200, pool_size=8192, num_blocks=8)
KEY = jax.random.key(0)


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


@pytest.fixture(scope="module", autouse=True)
def _short_rounds():
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


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, train(SPEC, QUICK, folder=folder, num_sequences=20_000)


def test_training_lowers_the_loss_and_measures_it(undisturbed):
    folder, trained = undisturbed
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [100, 200, 300, 400]
    assert lines[-1]["validation_loss"] < lines[0]["validation_loss"]
    assert trained.loss.mean == pytest.approx(lines[-1]["validation_loss"], rel=0.2)
    assert json.loads((folder / "result.json").read_text())["adjusted_loss"] == trained.loss.mean
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["settings"]["learning_rate"] == 3e-3
    assert settings["settings"]["noise"] == "choice(1,3)"
    assert model_file.read_metadata(folder / "model.safetensors")["noise"] == "choice(1,3)"
    assert model_file.read_metadata(folder)["noise"] == "choice(1,3)"


@pytest.mark.parametrize("num_units", [0, 1, 3])
def test_a_run_goes_on_to_the_same_bytes(num_units, undisturbed, tmp_path):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, progress=InterruptAfter(num_units))
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000)
    assert (tmp_path / "model.safetensors").read_bytes() == (undisturbed[0] / "model.safetensors").read_bytes()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [100, 200, 300, 400]


@pytest.mark.parametrize(("family", "num_units"), [("full", 3), ("full", 6), ("diag", 3)])
def test_a_fast_run_goes_on_to_the_same_bytes(family, num_units, tmp_path):
    """GD++ has two units of work here, FULL's starts seven, DIAG two; then comes the selection."""
    spec, recipe = replace(SPEC, family=family), replace(Fast(), num_starts=2, num_steps=300, pool_size=8192)
    with pytest.raises(InterruptedHereError):
        train(spec, recipe, folder=tmp_path / "cut", progress=InterruptAfter(num_units))
    for folder in ("cut", "undisturbed"):
        train(spec, recipe, folder=tmp_path / folder, num_sequences=1000)
    expected = (tmp_path / "undisturbed" / "model.safetensors").read_bytes()
    assert (tmp_path / "cut" / "model.safetensors").read_bytes() == expected


@pytest.mark.parametrize("optimiser", ["adam", "soap"])
def test_what_is_trained_does_not_depend_on_when_it_is_looked_at(optimiser):
    def models(steps):
        spec = replace(SPEC, family="full")
        stage = replace(QUICK, num_steps=60, dtype="float64").stages(spec, KEY)[0]
        stage = replace(stage, starts=RandomStarts(spec, 2, 0.01), optimiser=optimiser, validate_every=steps)
        data, state = stage.prepare(), stage.start({})
        while int(state.step) < 60:
            state = stage.advance(state, data)
        assert int(state.num_rollbacks.sum()) == 0
        return state.models

    assert eqx.tree_equal(models(20), models(60), rtol=1e-9, atol=1e-12)


def damaged_checkpoint(path, damage):
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "alter":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:  # with a checksum that fits
        arrays, metadata = tensors.read_tensors(path, "lintra-checkpoint-1")
        tensors.write_tensors(path, arrays, metadata | {"models": damage})


@pytest.mark.parametrize("damage", ["cut", "alter", "[1]", "[" * 100_000])
def test_a_damaged_checkpoint_is_said_and_the_one_before_is_used(damage, undisturbed, tmp_path):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, progress=InterruptAfter(2))
    damaged_checkpoint(tmp_path / "checkpoint.safetensors", damage)
    messages = Messages()
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000, progress=messages)
    (text,) = messages.texts
    assert "checkpoint.safetensors" in text
    assert "resumes from the one before it" in text
    assert (tmp_path / "model.safetensors").read_bytes() == (undisturbed[0] / "model.safetensors").read_bytes()


def test_a_full_disk_leaves_the_last_checkpoint_whole(undisturbed, tmp_path, monkeypatch):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, progress=InterruptAfter(1))

    before, sync = (tmp_path / "checkpoint.safetensors").read_bytes(), os.fsync

    def full(handle):
        if "checkpoint" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(28, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            train(SPEC, QUICK, folder=tmp_path)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
    messages = Messages()
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000, progress=messages)
    assert not messages.texts
    assert (tmp_path / "model.safetensors").read_bytes() == (undisturbed[0] / "model.safetensors").read_bytes()


def test_the_folder_of_another_run_is_refused(undisturbed):
    with pytest.raises(ValueError, match=r"holds a run with num_steps = 400, not 500. Choose another folder"):
        train(SPEC, replace(QUICK, num_steps=500), folder=undisturbed[0])
    run = RunFolder(undisturbed[0], json.loads((undisturbed[0] / "settings.json").read_text())["settings"], {})
    with pytest.raises(ValueError, match="is in use by another run"):
        train(SPEC, QUICK, folder=undisturbed[0])
    run.close()


def test_a_seed_trains_the_same_alone_and_beside_others():
    def best(count):
        stage = replace(QUICK, num_starts=count, num_steps=100, dtype="float64").stages(SPEC, KEY)[0]
        state = stage.advance(stage.start({}), stage.prepare())
        return jax.tree.map(lambda leaf: np.asarray(leaf[0]), state.best)

    assert eqx.tree_equal(best(1), best(3), rtol=1e-9, atol=1e-12)  # sums over stacks may differ in the last bits


def test_bad_steps_are_refused_and_counted_and_do_not_touch_other_starts():
    def starts(models, warm_starts, key):
        good = Diagonal.random(2, dim=3, num_examples=6, scale=0.05, key=key)
        exploding = jax.tree.map(lambda leaf: jnp.full_like(leaf, 1e20), good)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), good, exploding)

    stage = replace(QUICK.stages(SPEC, KEY)[0], starts=starts, num_steps=100)
    state = stage.advance(stage.start({}), stage.prepare())
    assert state.num_rejected.tolist()[1] == 100
    assert state.num_rejected.tolist()[0] < 5
    assert np.array_equal(state.models.p[1], np.full((2, 1, 2), 1e20, np.float32))
    assert np.isfinite(state.best_loss[0])
    assert np.isinf(state.best_loss[1])


def test_a_run_that_cannot_be_saved_says_what_to_change():
    stage = replace(QUICK.stages(SPEC, KEY)[0], starts=RandomStarts(SPEC, 1, scale=1e20), num_steps=100)
    with pytest.raises(TrainingFailedError, match=r"diverged at step 100.*Try a smaller learning rate than 0.003"):
        stage.advance(stage.start({}), stage.prepare())


def test_a_model_that_is_stuck_where_it_has_gone_gets_back_and_goes_on():
    stage = replace(QUICK.stages(SPEC, KEY)[0], num_steps=200, rollback=Rollback(3.0))
    data = stage.prepare()
    state = stage.advance(stage.start({}), data)
    explode = jax.tree.map(lambda leaf: jnp.full_like(leaf, 1e20), state.models)
    lost = replace(state, step=jnp.asarray(100), models=explode)
    after = stage.advance(lost, data)
    assert after.num_rejected.tolist() == [count + 100 for count in state.num_rejected.tolist()]
    assert not after.stopped
    assert eqx.tree_equal(after.models, state.best)
    assert after.rate.tolist() == [1.0] * len(after.rate)
    assert after.num_rollbacks.tolist() == [count + 1 for count in state.num_rollbacks.tolist()]


def test_a_model_that_has_gone_astray_returns_to_its_best():
    recipe = replace(QUICK, num_steps=200, learning_rate=0.3)
    stage = replace(recipe.stages(SPEC, KEY)[0], rollback=Rollback(3.0))
    data = stage.prepare()
    state = stage.advance(stage.start({}), data)
    losses = jax.vmap(data[1].loss)(state.models)
    assert (np.asarray(losses) <= 3 * np.asarray(state.best_loss)).all()
    assert int(state.num_rollbacks.sum()) > 0


def test_a_model_owned_by_exploding_sequences_is_not_called_trained():
    p, q = np.asarray([[[-2.0, -1.0]]] * 5), np.asarray([[[0.5, 0.1]]] * 5)
    result = assess(Diagonal(p, q, 6, 3), SPEC.problem, num_sequences=20_000, key=KEY)
    assert "the model diverges on rare sequences and is not sound" in result.message
    assert not result.is_sound
    sound = assess(Diagonal(0 * p, q, 6, 3), SPEC.problem, num_sequences=20_000, key=KEY)
    assert (sound.is_sound, sound.message) == (True, "")


def test_tasks_are_checked():
    with pytest.raises(ValueError, match="`family` must be one of gd\\+\\+, diag, full, got 'fll'"):
        ModelSpec("fll", 2, "fixed(1)")
    with pytest.raises(ValueError, match="`num_layers`"):
        ModelSpec("full", 0, "fixed(1)")
    with pytest.raises(ValueError, match="noise"):
        ModelSpec("full", 1, "loud")


@pytest.mark.parametrize("family", FAMILIES)
def test_fast_trains_every_family(family):
    spec = replace(SPEC, family=family)
    trained = train(spec, SMALL, num_sequences=50_000)
    assert trained.model.family == family
    assert trained.loss.mean < (0.30 if family == "gd++" else 0.26)


def test_a_warm_start_is_never_made_worse_and_pools_are_shared():
    cache, smaller, losses = {}, None, {}
    for family in ("gd++", "diag", "full"):
        spec = replace(SPEC, family=family, num_layers=1)
        shallower = train(spec, SMALL, cache=cache, num_sequences=1000, throw=False).model
        count = len(cache)
        warm_starts = WarmStarts(shallower=shallower, smaller=smaller)
        result = train(
            replace(spec, num_layers=2), SMALL, warm_starts=warm_starts, cache=cache, num_sequences=50_000
        )
        assert len(cache) == count
        assert result.model.num_layers == 2
        smaller, losses[family] = result.model, result.loss
    assert losses["diag"].mean <= losses["gd++"].mean + 2 * losses["gd++"].standard_error
    assert losses["full"].mean <= losses["diag"].mean + 2 * losses["diag"].standard_error


def test_time_goes_on_where_it_was(tmp_path):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, num_sequences=1000, progress=InterruptAfter(2))
    before = [json.loads(line)["seconds"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000)
    after = [json.loads(line)["seconds"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert after[: len(before)] == before
    assert after == sorted(after)
    assert len(after) == 4


def test_clipping_can_be_left_out():
    stage: Any = Paper(clip_norm=None).stages(SPEC, KEY)[0]
    assert stage.guard.clip_norm is None
    with pytest.raises(ValueError, match="`clip_norm` must be"):
        Paper(clip_norm=0.0)


def test_warm_starts_that_do_not_fit_are_rejected(tmp_path):
    def model(family, num_layers, num_heads=1):
        return FAMILIES[family].random(num_layers, dim=3, num_examples=6, num_heads=num_heads, key=KEY)

    full = replace(SPEC, family="full")
    sizes = r"\(family, num_layers, num_heads, dim, num_examples\)"
    for spec, warm_starts, message in (
        (full, WarmStarts(shallower=model("full", 1)), r"`warm_starts.shallower` needs .* \('diag', 2\)"),
        (
            full,
            WarmStarts(smaller=model("full", 1)),
            rf"`warm_starts.smaller` must have {sizes} = \('diag', 2, 1, 3, 6\)",
        ),
        (full, WarmStarts(smaller=model("gd++", 2)), r"got \('gd\+\+', 2, 1, 3, 6\)"),
        (
            SPEC,
            WarmStarts(fewer_heads=model("diag", 2)),
            r"`warm_starts.fewer_heads` must have .* = \('diag', 2, 0,",
        ),
        (replace(SPEC, family="gd++"), WarmStarts(smaller=model("gd++", 2)), "no family is smaller than gd"),
    ):
        with pytest.raises(ValueError, match=message):
            train(spec, SMALL, warm_starts=warm_starts)
    with pytest.raises(ValueError, match="leave out `warm_starts` or `folder`"):
        train(SPEC, SMALL, warm_starts=WarmStarts(smaller=model("gd++", 2)), folder=tmp_path)
    with pytest.raises(TypeError, match="`warm_starts` must be WarmStarts"):
        train(SPEC, SMALL, warm_starts={"smaller": model("gd++", 2)})  # pyright: ignore[reportArgumentType]
    WarmStarts(model("diag", 1, 2), model("gd++", 2), model("diag", 2, 1)).check(replace(SPEC, num_heads=2))


def test_a_model_that_is_not_sound_raises_or_is_returned(tmp_path, monkeypatch):
    explodes = Diagonal(np.asarray([[[-2.0, -1.0]]] * 5), np.asarray([[[0.5, 0.1]]] * 5), 6, 3)
    monkeypatch.setattr("lintra.training.loop.run_stages", lambda stages, *_, **__: {stages[-1].name: explodes})
    with pytest.raises(TrainingFailedError, match=r"is not sound.*another seed.*`throw=False`"):
        train(SPEC, SMALL, folder=tmp_path, num_sequences=20_000)
    assert (tmp_path / "model.safetensors").exists()
    written = json.loads((tmp_path / "result.json").read_text())
    result = train(SPEC, SMALL, num_sequences=20_000, throw=False)
    assert not result.is_sound
    assert json_safe(result.to_row()) == written
    assert (written["key"], written["is_sound"], written["message"]) == (0, False, result.message)


def test_a_number_and_its_key_train_the_same_model():
    spec = replace(SPEC, family="gd++")
    first, second = (train(spec, key=key, num_sequences=1000) for key in (3, jax.random.key(3)))
    assert eqx.tree_equal(first.model, second.model)
    assert (first.loss, first.key, second.key) == (second.loss, 3, (0, 3))
    with pytest.raises(ValueError, match="`key` must be a whole number of at least 0, got -1"):
        train(spec, key=-1)


class FullOfAnotherName(Full):
    """A family without a stage of its own."""

    family = "another"
    smaller = None


class DiagonalOfAnotherName(Diagonal):
    """A family without a stage of its own, whose parameters are not matrices."""

    family = "vectors"
    smaller = "gd++"

    @classmethod
    def from_smaller(cls, model):  # pyright: ignore[reportIncompatibleMethodOverride]
        diagonal = Diagonal.from_smaller(model)
        return cls.from_parameters(diagonal.parameters(), model.num_examples, model.dim)


@pytest.mark.parametrize("family", [FullOfAnotherName, DiagonalOfAnotherName])
@pytest.mark.parametrize("recipe", [SMALL, QUICK])
def test_a_family_without_a_stage_of_its_own_is_trained_by_descent(family, recipe, monkeypatch):
    monkeypatch.setitem(FAMILIES._members, family.family, family)
    spec = replace(SPEC, family=family.family)
    assert not recipe.unused(spec)
    result = train(spec, recipe, num_sequences=20_000, throw=False)
    assert type(result.model) is family
    zero = train(spec, replace(recipe, num_steps=1), num_sequences=20_000, throw=False)
    assert result.loss.mean <= zero.loss.mean
    assert result.loss.mean < 0.9  # zero weights have 0.95
    assert Cell(spec).cost > Cell(SPEC).cost


def test_a_shallower_model_starts_with_a_small_layer_at_three_places():
    shallower = FAMILIES["full"].random(2, dim=3, num_examples=6, scale=0.5, key=KEY)
    spec = replace(SPEC, family="full", num_layers=3)
    starts = RandomAndWarmStarts(RandomStarts(spec, 2, scale=0.1), perturbation=1e-9)
    models: Any = starts({}, WarmStarts(shallower=shallower), KEY)
    gram = jnp.cov(jax.random.normal(KEY, (4, 9)))
    finals = jax.vmap(lambda model: model.final_weights(gram))(models)
    assert finals.shape == (5, 3)
    assert np.allclose(finals[2:], shallower.final_weights(gram), atol=1e-6)
    gaps = [np.abs(np.asarray(models.p[start])).max(axis=(1, 2, 3)).argmin() for start in (2, 3, 4)]
    assert gaps == [0, 1, 2]


def test_the_last_choice_sees_what_is_rare_but_not_what_is_rarer():
    selection = Selection("selected", KEY, SPEC, ("a", "b"), num_blocks=2)
    calm = Diagonal(np.asarray([[[0.0, -0.3]]]), np.asarray([[[0.3, 0.3]]]), 6, 3)
    state = selection.start({"a": calm, "b": calm})
    sequences = 8192
    for probability, counts in ((1e-8, False), (1e-5, True)):
        worst = state.means.worst.at[1, 0, 0].set(1e9)
        importance = state.means.importance.at[1, 0, 0].set(probability * sequences)
        before = replace(state, means=replace(state.means, worst=worst, importance=importance))
        seen = selection.advance(before, selection.prepare())
        means = seen.means.mean(IGNORED_PROBABILITY)
        assert (means[1, 0] > 100) == counts
        assert means[1, 1] == pytest.approx(means[0, 1], rel=0.2)
        assert selection.best(seen) == 1  # as the simpler one, where both are as good


FIXED = {
    "bench": "inputs whose values do not matter, timed",
    "theory": "checks that always give the same answer",
    "evaluation/adjusted_loss.py": "shapes only: no numbers are drawn",
}


def test_no_function_draws_from_a_fixed_seed_without_a_reason():
    """None of `default_rng(0)`, `key(0)` and `f(key=0)`: error bars over seeds would be too small."""
    source, found = Path(lintra.__file__).parent, set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).split(".")[-1]
            values = node.args if called in ("default_rng", "key", "PRNGKey") else []
            values = [*values, *(keyword.value for keyword in node.keywords if keyword.arg == "key")]
            if (values and all(isinstance(value, ast.Constant) for value in values)) or (
                called == "default_rng" and not values
            ):
                found.add(path.relative_to(source).as_posix())
    unexplained = {name for name in found if not any(name.startswith(place) for place in FIXED)}
    assert not unexplained
    assert all(any(name.startswith(place) for name in found) for place in FIXED)


@pytest.mark.slow
def test_killed_at_random_moments_a_run_ends_in_the_same_bytes(tmp_path):
    """Twenty times `kill -9`, on a run of two stages kinds: a fit, and SOAP."""
    command = [
        sys.executable,
        "-m",
        "lintra",
        "train",
        "--family",
        "full",
        "--layers",
        "3",
        "--noise",
        "choice(1,3)",
    ]
    command += ["--dim", "5", "--examples", "10", "--steps", "6000", "--sequences", "10000", "--out"]
    subprocess.run([*command, str(tmp_path / "undisturbed")], check=True, capture_output=True)
    moments, kills = random.Random(0), 0
    while kills < 20:
        folder = tmp_path / f"killed-{kills}"
        while True:
            process = subprocess.Popen(
                [*command, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                process.wait(timeout=moments.uniform(1.0, 20.0))
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        assert process.returncode == 0
        expected = (tmp_path / "undisturbed" / "model.safetensors").read_bytes()
        assert (folder / "model.safetensors").read_bytes() == expected
