import jax.numpy as jnp
import numpy as np
import pytest

import lintra
from anatomy_helpers import contexts
from baselines_helpers import PROBLEM
from lintra.baselines import ConstantRidge, oracle_weights
from lintra.baselines.oracle import implied_noise_std
from lintra.statistics.sampling import sample_statistics


def test_a_negative_penalty_or_noise_level_is_rejected(getkey):
    stats, _ = sample_statistics(PROBLEM, (3,), key=getkey())
    with pytest.raises(ValueError, match="`constant` must be one number and not negative"):
        ConstantRidge(-2.0)
    with pytest.raises(ValueError, match="`noise_std` must not be negative, got -2"):
        oracle_weights(stats, -2.0)
    with pytest.raises(ValueError, match="`noise_std` must be one number or of shape"):
        oracle_weights(stats, np.ones(2))
    by_list = oracle_weights(stats, [2.0, 2.0, 2.0])  # pyright: ignore[reportArgumentType] # lists are converted
    assert np.array_equal(oracle_weights(stats, 2.0), by_list)


@pytest.mark.parametrize("noise_std", [0.1, 1.0, 4.0])
def test_the_implied_noise_of_ridge_with_sigma_is_sigma(noise_std):
    stats = contexts(dim=10, num_examples=20, noise="fixed(2)")
    weights = lintra.oracle_weights(stats, jnp.full(50, noise_std))
    np.testing.assert_allclose(implied_noise_std(weights, stats), noise_std, rtol=0.01)
