import jax
import jax.numpy as jnp
import numpy as np

from lintra.training.sampling import sample_pool
from training_helpers import PROBLEM


def test_a_pool_has_targets_in_64_bits_and_the_precision_asked_for():
    pool = sample_pool(PROBLEM, objective="bayes", num_sequences=100, dtype="float32", key=jax.random.key(0))
    exact = sample_pool(PROBLEM, objective="bayes", num_sequences=100, key=jax.random.key(0))
    assert pool.target.dtype == jnp.float32
    assert np.array_equal(pool.target, exact.target.astype(jnp.float32))
