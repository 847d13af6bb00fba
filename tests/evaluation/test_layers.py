import jax
import numpy as np
import pytest

from evaluation_helpers import BLOCK, PROBLEM
from lintra.baselines import LeastSquares, oracle_weights
from lintra.evaluation.adjusted_loss import evaluate
from lintra.models import Diagonal
from lintra.problem.loss import half_square
from lintra.statistics.sampling import sample_statistics


def test_layers_come_in_order_and_the_last_is_the_model(getkey):
    model, key = Diagonal.random(12, dim=4, num_examples=9, scale=0.1, key=getkey()), getkey()
    layers = evaluate(
        {"model": model, "ols": LeastSquares()}, PROBLEM, num_sequences=500, every_layer=True, key=key
    )
    assert layers.layers("model") == tuple(range(1, 13))
    assert layers.layers("ols") == ()
    whole = evaluate(model, PROBLEM, num_sequences=500, key=key)
    assert np.allclose(layers.losses("model", 12), whole.losses(), rtol=1e-9)
    assert np.array_equal(layers.losses("model"), layers.losses("model", 12))
    block_key = jax.random.split(jax.random.fold_in(key, 0))[0]
    stats, truth = sample_statistics(PROBLEM, (BLOCK,), key=block_key)
    third = half_square(model.layer_weights(stats)[:, 2] - oracle_weights(stats, truth.noise_std))
    assert np.allclose(layers.losses("model", 3), third[:500], rtol=1e-9)
    with pytest.raises(ValueError, match="`layer` of 'model' must be from 1 to 12, got 13"):
        layers.adjusted("model", 13)
    with pytest.raises(
        ValueError, match="`layer` of 'diag-12' must be None, unless `evaluate` has `every_layer=True`"
    ):
        whole.adjusted(layer=1)
