import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import NoisyRegression
from lintra.training.batch import OBJECTIVES, loss
from lintra.training.sampling import sample_batch
from training_helpers import MODEL, PROBLEM


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
