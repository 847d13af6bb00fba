import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import NoisyRegression
from lintra.models.spec import ModelSpec
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.growth.random_restarts import perturbations, restart_search
from lintra.training.least_squares import Fit, SpectralLeastSquares
from training_helpers import PROBLEM


@pytest.mark.parametrize("kind", [GDPlusPlusGrowth, DiagonalGrowth])
def test_perturbations_follow_the_key_of_the_stage(kind):
    def draw(seed):
        spec = ModelSpec("diag", 3, NoisyRegression(3, 6, "choice(1,3)"))
        stage = kind("name", jax.random.key(seed), spec)
        factors, orders = zip(*perturbations(stage.restart_key, stage.num_restarts, (3, 1, 4)), strict=True)
        return np.asarray(factors), np.asarray(orders)

    first, again, other = draw(0), draw(0), draw(1)
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not np.isclose(first[0], other[0]).any(axis=(1, 2, 3)).all()
    assert abs(np.corrcoef(first[0].ravel() - 1, other[0].ravel() - 1)[0, 1]) < 4.5 / first[0].size ** 0.5
    assert not np.array_equal(first[1], other[1])


def test_a_search_starts_from_the_perturbed_numbers_of_its_key():
    """With no iterations of the fit, the result is the best of the perturbed parameters."""
    parameters, problem = (
        jnp.asarray([[[-0.2, -0.4]], [[0.1, -0.5]]]),
        SpectralLeastSquares.from_problem(PROBLEM, 1e-8),
    )
    worst = Fit(parameters, jnp.asarray(jnp.inf))

    def search(seed, num_restarts=5):
        settings = {"num_restarts": num_restarts, "screening_steps": 0, "refinement_steps": 0}
        return np.asarray(restart_search(problem, worst, key=jax.random.key(seed), **settings).parameters)

    np.testing.assert_array_equal(search(0), search(0))
    assert not np.allclose(search(1), search(0))
    ((factors, order),) = perturbations(jax.random.key(0), 1, parameters.shape)
    np.testing.assert_allclose(search(0, num_restarts=1), (parameters * factors)[order], rtol=1e-12)
