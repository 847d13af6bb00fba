import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import NoisyRegression
from lintra.models import Full
from lintra.training.batch import OBJECTIVES, loss
from lintra.training.sampling import sample_lesson, sample_pool, sample_widened, sample_with_rare
from lintra.training.validation import sample_held_out

PROBLEM = NoisyRegression(dim=3, context=6, noise="choice(1,3)")
MODEL = Full.random(2, dim=3, context=6, scale=0.1, key=jax.random.key(1))


@pytest.fixture(scope="module")
def slopes():
    """Slopes of the loss on 50 lessons of 4,096 sequences, by objective."""

    def slope(objective):
        def one(key):
            lesson = sample_lesson(PROBLEM, key, objective=objective, size=4096)
            return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(jax.grad(loss)(MODEL, lesson))])

        return np.asarray(jax.lax.map(one, jax.random.split(jax.random.key(2), 50)))

    return {objective: slope(objective) for objective in OBJECTIVES}


@pytest.mark.parametrize("objective", ["query", "truth"])
def test_the_objectives_have_the_same_slope_in_expectation(objective, slopes):
    difference = slopes[objective] - slopes["bayes"]  # of the same sequences
    error = difference.std(axis=0, ddof=1) / len(difference) ** 0.5
    away = difference.mean(axis=0) / np.where(error > 0, error, 1)
    assert np.abs(away).max() < 4.5
    assert 0.5 < np.std(away[error > 0]) < 1.6  # as standard normal numbers are


def test_the_bayes_target_has_the_least_noise_and_the_sampled_query_the_most(slopes):
    noise = {name: values.std(axis=0).sum() for name, values in slopes.items()}
    assert noise["bayes"] < noise["truth"] < noise["query"]


def test_a_lesson_in_another_unit_of_labels_is_the_same_lesson():
    lesson = sample_lesson(PROBLEM, jax.random.key(0), objective="truth", size=64)
    other = lesson.in_unit(3.0)
    assert float(loss(MODEL.relabelled(1 / 3.0), other)) * 9 == pytest.approx(
        float(loss(MODEL, lesson)), rel=1e-12
    )


def test_with_an_input_covariance_the_loss_is_that_of_all_queries():
    problem = NoisyRegression(dim=3, context=6, noise="fixed(1)", covariance=[1.0, 4.0, 0.25])
    lesson = sample_lesson(problem, jax.random.key(0), objective="truth", size=50)
    difference = np.asarray(MODEL.final(lesson.gram) - lesson.target)
    expected = 0.5 * (difference**2 @ np.asarray([1.0, 4.0, 0.25])).mean()
    assert float(loss(MODEL, lesson)) == pytest.approx(expected, rel=1e-12)


def test_a_pool_has_targets_in_64_bits_and_the_precision_asked_for():
    pool = sample_pool(PROBLEM, jax.random.key(0), objective="bayes", size=100, dtype="float32")
    exact = sample_pool(PROBLEM, jax.random.key(0), objective="bayes", size=100)
    assert pool.target.dtype == jnp.float32
    assert np.array_equal(pool.target, exact.target.astype(jnp.float32))


def test_widened_sequences_are_wider():
    pool = sample_pool(PROBLEM, jax.random.key(0), objective="bayes", size=8192)
    wide = sample_widened(PROBLEM, jax.random.key(0), objective="query", size=8192)
    ratio = np.asarray(wide.gram.mean(axis=0) / pool.gram.mean(axis=0))
    assert 1.1 < ratio[0, 0] < 1.6
    assert ratio[-1, -1] > 1.5
    assert wide.probe.shape == (8192, 1, 3)


def test_held_out_loss_is_the_adjusted_loss():
    from lintra import evaluate

    held_out = sample_held_out(PROBLEM, jax.random.key(5), 30_000)
    measured = evaluate({"m": MODEL}, PROBLEM, num_sequences=100_000, key=jax.random.key(6)).adjusted("m")
    assert abs(float(held_out.loss(MODEL)) - measured.mean) < 5 * measured.standard_error


@pytest.mark.parametrize("objective", ["bayes", "truth"])
def test_sequences_with_rare_ones_among_them_have_the_same_means(objective, getkey):
    problem = NoisyRegression(dim=4, context=9, noise="fixed(1)")
    lesson = sample_with_rare(problem, getkey(), objective=objective, size=65_536)
    weight = np.asarray(lesson.probe)[:, 0, 0] ** 2
    assert weight.max() <= 2
    for values, expected in ((np.ones(65_536), 1.0), (np.asarray(lesson.gram)[:, 0, 0], 1.0)):
        weighted = weight * values
        assert abs(weighted.mean() - expected) < 4 * weighted.std() / 65_536**0.5
    assert (np.asarray(lesson.gram)[1::2, 0, 0].mean()) > 1.15
    weights = np.asarray(lesson.target)
    again = np.asarray(lesson.probed(lesson.target))
    assert np.allclose(again, np.sqrt(weight)[:, None] * weights)
