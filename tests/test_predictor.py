import jax.numpy as jnp
import numpy as np
import pytest

from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics
from members import DIM, MODELS, PREDICTORS, ROTATION_EQUIVARIANT, random_rotation
from models_helpers import PROBLEM, close


@pytest.mark.parametrize("predictor", PREDICTORS.values(), ids=PREDICTORS.keys())
def test_leading_axes_are_contexts(predictor, getkey):
    stats, _ = sample_statistics(PROBLEM, (2, 3), key=getkey())
    weights = predictor.weights(stats)
    assert weights.shape == (2, 3, DIM)
    for i, j in np.ndindex(2, 3):
        one = predictor.weights(GramStatistics(gram=stats.gram[i, j], num_examples=stats.num_examples[i, j]))
        assert close(weights[i, j], one, 1e-11)


@pytest.mark.parametrize("predictor", PREDICTORS.values(), ids=PREDICTORS.keys())
def test_weights_have_the_precision_of_the_statistics(predictor, getkey):
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())
    single = GramStatistics(gram=stats.gram.astype(jnp.float32), num_examples=stats.num_examples)
    weights = predictor.weights(single)
    assert weights.dtype == jnp.float32
    assert close(weights, predictor.weights(stats), 1e-3)


@pytest.mark.parametrize("query", [np.ones(1), np.ones(DIM + 1), 1.0, np.full(DIM, np.nan)])
def test_a_query_that_does_not_fit_is_rejected(query, getkey):
    stats, _ = sample_statistics(PROBLEM, key=getkey())
    with pytest.raises(ValueError, match="`query` must"):
        MODELS["full-1-h1"].predict(stats, query)


@pytest.mark.parametrize("predictor", ROTATION_EQUIVARIANT.values(), ids=ROTATION_EQUIVARIANT.keys())
def test_rotating_the_inputs_rotates_the_weights(predictor, getkey):
    x, y, _ = sample_data(PROBLEM, key=getkey())
    rotation = jnp.asarray(random_rotation(np.random.default_rng(0), DIM))
    rotated = predictor.weights(GramStatistics.from_data(x @ rotation.T, y))
    assert close(rotated, rotation @ predictor.weights(GramStatistics.from_data(x, y)), 1e-10)
