import jax.numpy as jnp
import pytest

from baselines_helpers import PROBLEM
from lintra.baselines import BASELINES, AdaptiveRidge, IterativeRidge, TunedRidge, baseline
from lintra.evaluation.adjusted_loss import evaluate
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics


@pytest.mark.parametrize("num_examples", [3, 4])
def test_adaptive_methods_without_degrees_of_freedom_are_nan_and_rejected_by_name(num_examples, getkey):
    problem = NoisyRegression(dim=4, num_examples=num_examples)
    stats, _ = sample_statistics(problem, key=getkey())
    tuned = TunedRidge(jnp.asarray(1.0), jnp.asarray(1.0))
    for predictor in (AdaptiveRidge(), tuned, IterativeRidge(5)):
        assert jnp.isnan(predictor.weights(stats)).all()
    for name in ("ada-ridge", "tuned-ridge", "iterative-ridge"):
        with pytest.raises(ValueError, match=f"`{name}`.*> dim, got num_examples={num_examples} and dim=4"):
            baseline(name, problem, key=getkey())
    for name in ("ols", "const-ridge", "bayes"):
        assert jnp.isfinite(baseline(name, problem, key=getkey()).weights(stats)).all()


def test_an_unknown_baseline_is_rejected(getkey):
    with pytest.raises(ValueError, match=r"`name` must be one of ols, .*got 'lasso'"):
        baseline("lasso", PROBLEM, key=getkey())


def test_without_noise_every_method_but_the_iterative_one_is_the_oracle(getkey):
    problem = NoisyRegression(noise="uniform(0,0)")
    predictors = {name: baseline(name, problem, key=getkey()) for name in BASELINES if name != "iterative-ridge"}
    comparison = evaluate(predictors, problem, num_sequences=10_000, key=getkey())
    assert all(comparison.losses(name).max() < 1e-20 for name in predictors)
