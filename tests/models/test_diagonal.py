import jax
import numpy as np
import pytest

from lintra.models import Diagonal, GDPlusPlus
from lintra.models.diagonal import diagonal_gradients
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics
from lintra.training.sampling import sample_pool
from members import MODELS, NUM_EXAMPLES
from training_helpers import KEY, PROBLEM


def test_slopes_of_weights_are_the_same_natively_and_in_plain_jax():
    pool, omega = (
        sample_pool(PROBLEM, objective="truth", num_sequences=70, key=KEY),
        jax.random.normal(KEY, (3, 2, 2)) * 0.3,
    )
    fast = diagonal_gradients(omega, pool.mean_gram, pool.target)
    slow = diagonal_gradients(omega, pool.mean_gram, pool.target, native=False)
    assert np.allclose(fast, slow, rtol=1e-11, atol=1e-13)


def test_one_head_ties_the_omegas_and_two_do_not():
    def tie(model):
        return np.asarray(
            model.omega[:, 0, 0] * model.omega[:, 1, 1] - model.omega[:, 0, 1] * model.omega[:, 1, 0]
        )

    assert np.allclose(tie(MODELS["diag-4-h1"]), 0, atol=1e-18)
    assert np.abs(tie(MODELS["diag-4-h2"])).min() > 1e-6


@pytest.mark.parametrize("name", ["diag-4-h1", "gd++-4-h1"])
def test_diagonal_models_run_at_any_number_of_inputs(name, getkey):
    stats, _ = sample_statistics(NoisyRegression(dim=7, num_examples=NUM_EXAMPLES), key=getkey())
    moved = MODELS[name].with_dim(dim=7)
    assert moved.weights(stats).shape == (7,)
    assert moved.matrices()[0].shape[-1] == 8
    with pytest.raises(ValueError, match=r"for 4 inputs and the context has 7.*with_dim\(dim"):
        MODELS[name].weights(stats)


def test_parameters_that_do_not_fit_are_rejected():
    with pytest.raises(ValueError, match=r"`p` and `q`.*\(3, 2\)"):
        Diagonal(np.ones((3, 2)), np.ones((3, 1, 2)), num_examples=5, dim=2)
    with pytest.raises(ValueError, match=r"`rates`.*\(3, 2\)"):
        GDPlusPlus(np.ones((3, 2)), num_examples=5, dim=2)
