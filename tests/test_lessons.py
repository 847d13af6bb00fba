import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import NoisyRegression
from lintra.models import Full
from lintra.training.batch import OBJECTIVES, loss
from lintra.training.perturbations import PROPOSAL_SCALE, HalfScaledInputs, ScaledInputs, Widened
from lintra.training.sampling import sample_batch, sample_pool, sample_with_importance
from lintra.training.validation import sample_validation

PROBLEM = NoisyRegression(dim=3, num_examples=6, noise="choice(1,3)")
MODEL = Full.random(2, dim=3, num_examples=6, scale=0.1, key=jax.random.key(1))


@pytest.fixture(scope="module")
def gradients():
    """Gradients of the loss on 50 batchs of 4,096 sequences, by objective."""

    def gradient(objective):
        def one(key):
            batch = sample_batch(PROBLEM, objective=objective, num_sequences=4096, key=key)
            return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(jax.grad(loss)(MODEL, batch))])

        return np.asarray(jax.lax.map(one, jax.random.split(jax.random.key(2), 50)))

    return {objective: gradient(objective) for objective in OBJECTIVES}


@pytest.mark.parametrize("objective", ["query", "truth"])
def test_the_objectives_have_the_same_gradient_in_expectation(objective, gradients):
    difference = gradients[objective] - gradients["bayes"]  # of the same sequences
    error = difference.std(axis=0, ddof=1) / len(difference) ** 0.5
    away = difference.mean(axis=0) / np.where(error > 0, error, 1)
    assert np.abs(away).max() < 4.5
    assert 0.5 < np.std(away[error > 0]) < 1.6  # as standard normal numbers are


def test_the_bayes_target_has_the_least_noise_and_the_sampled_query_the_most(gradients):
    noise = {name: values.std(axis=0).sum() for name, values in gradients.items()}
    assert noise["bayes"] < noise["truth"] < noise["query"]


def test_a_batch_in_another_unit_of_labels_is_the_same_batch():
    batch = sample_batch(PROBLEM, objective="truth", num_sequences=64, key=jax.random.key(0))
    other = batch.divide_labels(3.0)
    assert float(loss(MODEL.for_label_scale(1 / 3.0), other)) * 9 == pytest.approx(
        float(loss(MODEL, batch)), rel=1e-12
    )


def test_with_an_input_covariance_the_loss_is_that_of_all_queries():
    problem = NoisyRegression(dim=3, num_examples=6, noise="fixed(1)", covariance=np.asarray([1.0, 4.0, 0.25]))
    batch = sample_batch(problem, objective="truth", num_sequences=50, key=jax.random.key(0))
    difference = np.asarray(MODEL.final_weights(batch.mean_gram) - batch.target)
    expected = 0.5 * (difference**2 @ np.asarray([1.0, 4.0, 0.25])).mean()
    assert float(loss(MODEL, batch)) == pytest.approx(expected, rel=1e-12)


def test_a_pool_has_targets_in_64_bits_and_the_precision_asked_for():
    pool = sample_pool(PROBLEM, objective="bayes", num_sequences=100, dtype="float32", key=jax.random.key(0))
    exact = sample_pool(PROBLEM, objective="bayes", num_sequences=100, key=jax.random.key(0))
    assert pool.target.dtype == jnp.float32
    assert np.array_equal(pool.target, exact.target.astype(jnp.float32))


def test_widened_sequences_are_wider():
    pool = sample_pool(PROBLEM, objective="bayes", num_sequences=8192, key=jax.random.key(0))
    wide = sample_pool(
        PROBLEM, objective="query", num_sequences=8192, perturbation=Widened(), key=jax.random.key(0)
    )
    ratio = np.asarray(wide.mean_gram.mean(axis=0) / pool.mean_gram.mean(axis=0))
    assert 1.1 < ratio[0, 0] < 1.6
    assert ratio[-1, -1] > 1.5
    assert wide.sqrt_metric is not None
    assert wide.sqrt_metric.shape == (8192, 1, 3)


def test_validation_loss_is_the_adjusted_loss():
    from lintra import evaluate

    validation = sample_validation(PROBLEM, num_sequences=30_000, key=jax.random.key(5))
    measured = evaluate({"m": MODEL}, PROBLEM, num_sequences=100_000, key=jax.random.key(6)).adjusted("m")
    assert abs(float(validation.loss(MODEL)) - measured.mean) < 5 * measured.standard_error


@pytest.mark.parametrize("objective", ["bayes", "truth"])
def test_sequences_with_half_of_their_inputs_scaled_have_the_same_means(objective, getkey):
    problem = NoisyRegression(dim=4, num_examples=9, noise="fixed(1)")
    batch = sample_pool(
        problem, objective=objective, num_sequences=65_536, perturbation=HalfScaledInputs(), key=getkey()
    )
    weight = np.asarray(batch.sqrt_metric)[:, 0, 0] ** 2
    assert weight.max() <= 2
    for values, expected in ((np.ones(65_536), 1.0), (np.asarray(batch.mean_gram)[:, 0, 0], 1.0)):
        weighted = weight * values
        assert abs(weighted.mean() - expected) < 4 * weighted.std() / 65_536**0.5
    assert (np.asarray(batch.mean_gram)[1::2, 0, 0].mean()) > 1.15
    weights = np.asarray(batch.target)
    again = np.asarray(batch.errors(batch.target))
    assert np.allclose(again, np.sqrt(weight)[:, None] * weights)


def test_scaled_inputs_weighted_by_their_importance_have_the_same_means(getkey):
    problem = NoisyRegression(dim=2, num_examples=5, noise="fixed(1)")
    settings = {"objective": "oracle", "num_sequences": 100_000, "key": getkey()}
    batch, log_importance = sample_with_importance(problem, perturbation=ScaledInputs(PROPOSAL_SCALE), **settings)
    importance = np.exp(np.asarray(log_importance))
    for values, expected in ((np.ones(100_000), 1.0), (np.asarray(batch.mean_gram)[:, 0, 0], 1.0)):
        weighted = importance * values
        assert abs(weighted.mean() - expected) < 4.5 * weighted.std() / 100_000**0.5
    assert np.asarray(batch.mean_gram)[:, 0, 0].mean() > 1.15
    _, log_importance = sample_with_importance(problem, perturbation=ScaledInputs(1.0), **settings)
    assert np.array_equal(log_importance, np.zeros(100_000))


@pytest.mark.parametrize("perturbation", [ScaledInputs(1.1), HalfScaledInputs()])
def test_inputs_with_a_covariance_are_not_scaled(perturbation):
    problem = NoisyRegression(dim=2, num_examples=5, covariance=np.asarray([1.0, 4.0]))
    with pytest.raises(ValueError, match="`problem` must have `covariance=None`"):
        sample_batch(problem, objective="truth", num_sequences=2, perturbation=perturbation, key=jax.random.key(0))
