from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from baselines_helpers import PROBLEM, map_to_numpy, ridge
from lintra.baselines import AdaptiveRidge, ConstantRidge, LeastSquares, TunedRidge, oracle_weights
from lintra.evaluation.adjusted_loss import evaluate
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data


def test_closed_forms_against_numpy(getkey):
    x, y, truth = map_to_numpy(sample_data(PROBLEM, key=getkey()))
    stats = GramStatistics.from_data(x, y)
    ols = np.linalg.lstsq(x, y)[0]
    estimate = np.sum((y - x @ ols) ** 2) / (9 - 4)
    assert np.allclose(LeastSquares().weights(stats), ols, rtol=1e-12)
    assert np.allclose(ConstantRidge(jnp.asarray(2.5)).weights(stats), ridge(x, y, 2.5), rtol=1e-12)
    assert np.allclose(AdaptiveRidge().weights(stats), ridge(x, y, estimate), rtol=1e-11)
    for ceiling in (0.5 * estimate, 2 * estimate):
        tuned = TunedRidge(jnp.asarray(1.2), jnp.asarray(ceiling))
        assert np.allclose(tuned.weights(stats), ridge(x, y, 1.2 * min(estimate, ceiling)), rtol=1e-11)
    assert np.allclose(oracle_weights(stats, truth.noise_std), ridge(x, y, truth.noise_std**2), rtol=1e-11)


def test_fewer_examples_than_inputs_give_the_solution_of_least_norm(getkey):
    x, y, _ = map_to_numpy(sample_data(NoisyRegression(dim=6, num_examples=3), key=getkey()))
    stats = GramStatistics.from_data(x, y)
    expected = np.linalg.pinv(x) @ y
    assert np.allclose(LeastSquares().weights(stats), expected, rtol=1e-10)
    assert np.allclose(oracle_weights(stats, jnp.asarray(0.0)), expected, rtol=1e-10)
    assert np.allclose(oracle_weights(stats, jnp.asarray(1e-6)), expected, rtol=1e-6)


def test_collinear_inputs_give_the_solution_of_least_norm(getkey):
    x, y, _ = map_to_numpy(sample_data(PROBLEM, key=getkey()))
    x[:, 3] = x[:, 0] - 2 * x[:, 1]
    assert np.allclose(LeastSquares().weights(GramStatistics.from_data(x, y)), np.linalg.pinv(x) @ y, rtol=1e-8)


@pytest.mark.parametrize("noise", ["uniform(0,5)", "choice(1,3)"])
@pytest.mark.parametrize("covariance", [None, (0.1, 1.0, 3.0, 5.0)])
def test_the_best_constant_is_the_second_moment_of_the_noise(noise, covariance, getkey):
    """The minimum over constants on 100,000 sequences is at E[σ²], within what the sample can tell."""
    problem = NoisyRegression(dim=4, num_examples=9, noise=noise, covariance=covariance)
    best = float(ConstantRidge.tuned(problem).constant)
    assert best == pytest.approx(problem.noise.second_moment)
    factors = 1.25 ** np.arange(-2, 3)
    candidates = {f"{f:g}": ConstantRidge(jnp.asarray(f * best)) for f in factors}
    comparison = evaluate(candidates, problem, num_sequences=100_000, key=getkey())
    for other in ("0.8", "1.25"):
        worse = comparison.difference(other, "1")
        assert worse.mean > 3 * worse.standard_error
    # The losses lie on a smooth curve; a polynomial through them has its minimum within 0.1 % of the curve's.
    losses = [comparison.adjusted(name).mean for name in candidates]
    curve = np.polynomial.Polynomial.fit(np.log(factors), losses, deg=4)
    found: Any = minimize_scalar(curve, bounds=np.log(factors[[0, -1]]), method="bounded")
    assert np.exp(found.x) == pytest.approx(1, rel=0.03)
