import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation_helpers import ANISOTROPIC, BLOCK, PROBLEM, TWO
from lintra.baselines import AdaptiveRidge, ConstantRidge, LeastSquares, oracle_weights
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate
from lintra.models import Diagonal, Full
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics


@pytest.mark.parametrize("problem", [PROBLEM, ANISOTROPIC, NoisyRegression(dim=4, num_examples=3)], ids=str)
def test_the_exact_query_average_is_the_papers_monte_carlo(problem, getkey):
    """Two ways to the same number: their paired difference is within four of its standard errors."""
    predictors = {"ols": LeastSquares(), "const": ConstantRidge(jnp.asarray(2.0))}
    exact = evaluate(predictors, problem, num_sequences=200_000, protocol=True, key=getkey())
    for name in predictors:
        sampled = Estimate.from_values(exact.protocol_losses[name, None])
        gap = Estimate.from_values(exact.losses(name) - exact.protocol_losses[name, None])
        assert abs(gap.mean) < 4 * gap.standard_error
        assert exact.adjusted(name).standard_error < sampled.standard_error
        loss = exact.unadjusted(name).mean - exact.unadjusted("oracle").mean
        assert abs(loss - exact.adjusted(name).mean) < 5 * exact.unadjusted(name).standard_error


def test_more_sequences_begin_with_the_same_ones_and_differences_are_paired(getkey):
    key = getkey()
    few = evaluate(TWO, PROBLEM, num_sequences=100, key=key)
    many = evaluate({"ada": AdaptiveRidge()}, PROBLEM, num_sequences=BLOCK + 100, key=key)
    assert np.array_equal(few.losses("ada"), many.losses("ada")[:100])
    assert len(many.losses("ada")) == BLOCK + 100
    gap = few.difference("ada", "ols")
    assert gap == Estimate.from_values(few.losses("ada") - few.losses("ols"))
    assert gap.mean == pytest.approx(few.adjusted("ada").mean - few.adjusted("ols").mean)


def test_losses_are_those_of_the_sequences_themselves(getkey):
    key = getkey()
    comparison = evaluate(TWO, PROBLEM, num_sequences=50, key=key)
    block_key = jax.random.split(jax.random.fold_in(key, 0))[0]
    stats, truth = sample_statistics(PROBLEM, (BLOCK,), key=block_key)
    oracle = oracle_weights(stats, truth.noise_std)
    losses = half_square(LeastSquares().weights(stats) - oracle)
    assert np.allclose(comparison.losses("ols"), losses[:50], rtol=1e-9)
    worse = np.mean(losses[:50] > half_square(oracle)[:50])
    assert comparison.worse_than_zero("ols") == pytest.approx(worse)
    assert comparison.losses("ols").dtype == np.float64


@pytest.mark.parametrize("scale", [3.0, 30.0])
def test_losses_too_large_to_square_are_still_reported(scale, getkey):
    model = Diagonal.random(4, dim=4, num_examples=9, scale=scale, key=getkey())
    comparison = evaluate({"model": model}, PROBLEM, num_sequences=100, key=getkey())
    assert comparison.adjusted("model").mean > 1e100
    assert comparison.unadjusted("model").mean > 1e100


def test_no_sequences_are_rejected():
    with pytest.raises(ValueError, match="`num_sequences` must be a whole number of at least 1, got 0"):
        evaluate(TWO, PROBLEM, num_sequences=0)


def test_a_full_model_is_measured_as_any_other(getkey):
    model = Full.random(2, dim=4, num_examples=9, scale=0.1, key=getkey())
    assert np.isfinite(evaluate({"full": model}, PROBLEM, num_sequences=100, key=getkey()).adjusted("full").mean)
