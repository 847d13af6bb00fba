import jax
import numpy as np
import pytest

from evaluation_helpers import ANISOTROPIC, PROBLEM
from lintra.evaluation.estimate import Estimate
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_data


@pytest.mark.parametrize("problem", [PROBLEM, ANISOTROPIC], ids=["isotropic", "anisotropic"])
def test_the_exact_average_for_one_context_is_that_over_many_queries(problem, getkey):
    difference = jax.random.normal(getkey(), (4,))
    queries = sample_data(NoisyRegression(4, 100_000, covariance=problem.covariance), key=getkey())[0]
    losses = Estimate.from_values(np.asarray(0.5 * (queries @ difference) ** 2))
    assert abs(losses.mean - half_square(difference, problem.covariance)) < 4 * losses.standard_error
