import jax
import numpy as np
import pytest

from lintra import NoisyRegression
from lintra.training.perturbations import PROPOSAL_SCALE, HalfScaledInputs, ScaledInputs, Widened
from lintra.training.sampling import sample_batch, sample_pool, sample_with_importance
from training_helpers import PROBLEM


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
