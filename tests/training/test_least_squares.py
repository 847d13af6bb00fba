import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import evaluate
from lintra.evaluation import closed_form
from lintra.models import GDPlusPlus
from lintra.training.batch import Batch
from lintra.training.least_squares import SequenceLeastSquares, SpectralLeastSquares, levenberg_marquardt
from lintra.training.sampling import sample_pool
from training_helpers import KEY, PROBLEM


@pytest.mark.parametrize("objective", ["bayes", "query"])
def test_slope_and_curvature_of_a_fit_to_sequences(objective):
    """Directions √d eᵢ in turn, whose `v vᵀ` have the identity as their mean, make the curvature exact."""
    pool = sample_pool(PROBLEM, objective=objective, num_sequences=2048, key=KEY)
    parameters = jax.random.normal(KEY, (3, 2, 4)) * 0.3
    errors = jax.jit(jax.jacfwd(lambda x: pool.errors(_weights(x, pool.mean_gram) - pool.target)))
    jacobian = np.asarray(errors(parameters))
    width = jacobian.shape[1]
    directions = width**0.5 * np.broadcast_to(np.eye(width)[:, None], (width, 2048, width))
    cauchy_scale = jnp.asarray(jnp.inf)
    fits = [SequenceLeastSquares(pool, jnp.asarray(v), cauchy_scale).normal(parameters) for v in directions]
    squares, gradients = zip(*fits, strict=True)
    jacobian = jacobian.reshape(-1, parameters.size)
    assert np.allclose(np.mean(squares, axis=0), jacobian.T @ jacobian / 2048, rtol=1e-9, atol=1e-9)
    assert np.allclose(
        gradients[0], jax.grad(SequenceLeastSquares.from_batch(pool, KEY).value)(parameters).reshape(-1), rtol=1e-9
    )


def test_a_robust_fit_counts_losses_by_their_logarithm():
    pool = sample_pool(PROBLEM, objective="bayes", num_sequences=2048, key=KEY)
    parameters = jax.random.normal(KEY, (3, 1, 4)) * 0.3
    losses = np.asarray(0.5 * jnp.sum((_weights(parameters[:, :1], pool.mean_gram) - pool.target) ** 2, axis=-1))
    robust = SequenceLeastSquares.from_batch(pool, KEY, cauchy_scale=0.5)
    assert float(robust.value(parameters)) == pytest.approx(0.5 * np.log1p(losses / 0.5).mean(), rel=1e-9)
    assert np.allclose(robust.normal(parameters)[1], jax.grad(robust.value)(parameters).reshape(-1), rtol=1e-9)
    nearly = SequenceLeastSquares.from_batch(pool, KEY, cauchy_scale=1e12)
    plain = SequenceLeastSquares.from_batch(pool, KEY)
    assert np.allclose(nearly.normal(parameters)[0], plain.normal(parameters)[0], rtol=1e-6)


def test_a_rare_explosion_does_not_spoil_a_robust_fit():
    """One sequence with inputs a hundred times as long, on which a model that is good elsewhere diverges."""
    pool = sample_pool(PROBLEM, objective="bayes", num_sequences=4096, key=KEY)
    good, _ = levenberg_marquardt(
        SequenceLeastSquares.from_batch(pool, KEY),
        jnp.full((2, 1, 4), 0.3) * jnp.asarray([1.0, -1, 1, 1]),
        jnp.ones((2, 1, 4)),
        60,
    )
    scale = jnp.ones(4096).at[0].set(1e4)[:, None, None]
    rare = Batch(pool.mean_gram * scale, pool.target, pool.sqrt_metric)
    before = float(SequenceLeastSquares.from_batch(pool, KEY).value(good))
    assert float(SequenceLeastSquares.from_batch(rare, KEY).value(good)) > 100 * before
    robust, _ = levenberg_marquardt(
        SequenceLeastSquares.from_batch(rare, KEY, cauchy_scale=1.0), good, jnp.ones_like(good), 20
    )
    plain, _ = levenberg_marquardt(SequenceLeastSquares.from_batch(rare, KEY), good, jnp.ones_like(good), 20)
    without_the_rare = SequenceLeastSquares.from_batch(pool, KEY)
    assert float(without_the_rare.value(robust)) < 0.5 * float(without_the_rare.value(plain))


def _weights(parameters, gram):
    from lintra.models.diagonal import diagonal_recursion

    omega = jnp.einsum("lhi,lhj->lij", parameters[..., :2], parameters[..., 2:])
    return diagonal_recursion(omega, gram, native=False)


def test_the_spectral_fit_is_the_loss_of_gdpp():
    rates = jnp.asarray([[[-0.2, -0.4]], [[0.0, -0.5]]])
    floor = closed_form.adjusted(closed_form.constant_ridge_loss(PROBLEM), PROBLEM)
    loss = float(SpectralLeastSquares.from_problem(PROBLEM, 1e-14).value(rates)) + floor
    measured = evaluate({"m": GDPlusPlus(rates, 6, 3)}, PROBLEM, num_sequences=200_000, key=KEY).adjusted("m")
    assert abs(loss - measured.mean) < 4.5 * measured.standard_error


def test_a_fit_never_takes_a_step_that_overflows():
    pool = sample_pool(PROBLEM, objective="bayes", num_sequences=2048, key=KEY)
    steep = jnp.full((4, 1, 4), 30.0)
    parameters, value = levenberg_marquardt(
        SequenceLeastSquares.from_batch(pool, KEY), steep, jnp.ones_like(steep), 5
    )
    assert np.isfinite(parameters).all()
    assert not np.isnan(value)
    calm = steep / 100
    fit = SequenceLeastSquares.from_batch(pool, KEY)
    assert levenberg_marquardt(fit, calm, jnp.ones_like(calm), 5)[1] < 0.9 * fit.value(calm)
