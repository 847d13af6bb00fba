"""The gate counts what explodes, and resumes where it was interrupted."""

import json

import jax
import numpy as np
import pytest

from lintra import NoisyRegression, sample_statistics
from lintra.baselines.oracle import oracle_weights
from lintra.evaluation import safety
from lintra.evaluation.safety import GateCounts, count_explosions
from lintra.models import GDPlusPlus
from lintra.runtime.progress import Progress

PROBLEM = NoisyRegression(3, 6, "uniform(0,2)")
SIZE = 64


@pytest.fixture(scope="module")
def models():
    """Two steps along the gradient: one that diverges on long inputs, and the same damped."""
    wild = GDPlusPlus(np.asarray([[[0.0, -1.2]], [[0.0, -1.2]], [[0.0, -1.2]]]), 6, 3)
    return {"wild": wild, "damped": wild.with_damping(PROBLEM), "float32": wild.with_damping(PROBLEM)}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(safety, "block_size", lambda dim: SIZE)
    monkeypatch.setattr(safety, "_SAVE_EVERY", 2)


def count(models, **settings):
    options = {"num_sequences": 10 * SIZE, "single": frozenset({"float32"}), "key": 5}
    return count_explosions(models, PROBLEM, **(options | settings))


def test_counts_are_those_of_the_losses_of_all_sequences(models):
    found = count(models)
    losses = []
    for index in range(10):
        stats, truth = sample_statistics(PROBLEM, (SIZE,), key=jax.random.fold_in(jax.random.key(5), index))
        difference = models["wild"].weights(stats) - oracle_weights(stats, truth.noise_std)
        losses.append(0.5 * np.sum(np.asarray(difference) ** 2, axis=1))
    losses = np.concatenate(losses)
    wild = found["wild"]
    assert wild.num_sequences == len(losses) == 640
    assert wild.num_exploded == (losses > 15).sum() > 3
    assert not wild.is_safe
    np.testing.assert_allclose(wild.worst, losses.max())
    np.testing.assert_allclose(wild.adjusted_loss().mean, losses.mean())
    np.testing.assert_allclose(wild.adjusted_loss().standard_error, losses.std() / 639**0.5, rtol=1e-6)


def test_float32_is_close_to_float64_and_not_equal(models):
    found = count(models)
    assert found["float32"].total != found["damped"].total
    np.testing.assert_allclose(found["float32"].total, found["damped"].total, rtol=1e-4)


def test_losses_that_are_not_finite_are_exploded_and_stay_infinite_in_the_file(tmp_path, models):
    counts = GateCounts().add(np.asarray([1.0, np.inf, 16.0]), 3)
    assert (counts.num_exploded, counts.worst, counts.total) == (2, np.inf, np.inf)
    safety._write(tmp_path / "state.json", {"models": ["one"]}, 3, {"one": counts})
    assert safety._read(tmp_path / "state.json", {"models": ["one"]}) == (3, {"one": counts})


class Interrupt(Progress):
    """Raises after some blocks, like Ctrl-C."""

    def __init__(self, after):
        self.after = after

    def update(self, done, **fields):
        if done == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [1, 4, 7, 9])
def test_an_interrupted_count_is_resumed_and_has_the_same_result(models, tmp_path, after):
    state = tmp_path / "state.json"
    with pytest.raises(KeyboardInterrupt):
        count(models, state_file=state, progress=Interrupt(after))
    if after > 1:
        assert json.loads(state.read_text())["done"] == after // 2 * 2
    assert count(models, state_file=state) == count(models)
    assert count(models, state_file=state) == count(models)  # from the file, without a sequence


def test_a_file_of_another_job_is_rejected(models, tmp_path):
    state = tmp_path / "state.json"
    count(models, state_file=state, num_sequences=SIZE)
    with pytest.raises(ValueError, match="has the counts of other models, another problem or another key"):
        count(models, state_file=state, key=6)
    state.write_text("{}")
    with pytest.raises(ValueError, match=r"has no counts of explosions\. Delete it"):
        count(models, state_file=state)
