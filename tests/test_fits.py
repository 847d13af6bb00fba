from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lintra import NoisyRegression, evaluate
from lintra.evaluation import closed_form
from lintra.models import GDPlusPlus
from lintra.models.diagonal import diagonal_gradients
from lintra.models.spec import ModelSpec
from lintra.training.batch import Batch
from lintra.training.descent.soap import scale_by_soap
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.growth.restarts import perturbations, restart_search
from lintra.training.least_squares import Fit, SequenceLeastSquares, SpectralLeastSquares, levenberg_marquardt
from lintra.training.sampling import sample_pool
from lintra.training.warm_starts import WarmStarts

PROBLEM = NoisyRegression(dim=3, num_examples=6, noise="choice(1,3)")
KEY = jax.random.key(0)


def grow(stage, **warm_starts):
    """Run a stage to its end and return its model and the loss at every depth."""
    data, state, losses = stage.prepare(), stage.start({}, WarmStarts(**warm_starts)), []
    while (done := stage.progress(state))[0] < done[1]:
        state = stage.advance(state, data)
        losses.append(stage.metrics(state)["validation_loss"])
    return stage.finish(state), losses


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


def test_a_bent_fit_counts_losses_by_their_logarithm():
    pool = sample_pool(PROBLEM, objective="bayes", num_sequences=2048, key=KEY)
    parameters = jax.random.normal(KEY, (3, 1, 4)) * 0.3
    losses = np.asarray(0.5 * jnp.sum((_weights(parameters[:, :1], pool.mean_gram) - pool.target) ** 2, axis=-1))
    robust = SequenceLeastSquares.from_batch(pool, KEY, cauchy_scale=0.5)
    assert float(robust.value(parameters)) == pytest.approx(0.5 * np.log1p(losses / 0.5).mean(), rel=1e-9)
    assert np.allclose(robust.normal(parameters)[1], jax.grad(robust.value)(parameters).reshape(-1), rtol=1e-9)
    nearly = SequenceLeastSquares.from_batch(pool, KEY, cauchy_scale=1e12)
    plain = SequenceLeastSquares.from_batch(pool, KEY)
    assert np.allclose(nearly.normal(parameters)[0], plain.normal(parameters)[0], rtol=1e-6)


def test_a_rare_explosion_does_not_throw_a_bent_fit_away():
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
    usual = SequenceLeastSquares.from_batch(pool, KEY)
    assert float(usual.value(robust)) < 0.5 * float(usual.value(plain))


def _weights(parameters, gram):
    from lintra.models.diagonal import diagonal_recursion

    omega = jnp.einsum("lhi,lhj->lij", parameters[..., :2], parameters[..., 2:])
    return diagonal_recursion(omega, gram, native=False)


def test_slopes_of_weights_are_the_same_natively_and_in_plain_jax():
    pool, omega = (
        sample_pool(PROBLEM, objective="truth", num_sequences=70, key=KEY),
        jax.random.normal(KEY, (3, 2, 2)) * 0.3,
    )
    fast = diagonal_gradients(omega, pool.mean_gram, pool.target)
    slow = diagonal_gradients(omega, pool.mean_gram, pool.target, native=False)
    assert np.allclose(fast, slow, rtol=1e-11, atol=1e-13)


def test_the_spectral_fit_is_the_loss_of_gdpp():
    rates = jnp.asarray([[[-0.2, -0.4]], [[0.0, -0.5]]])
    floor = closed_form.adjusted(closed_form.constant_ridge_loss(PROBLEM), PROBLEM)
    loss = float(SpectralLeastSquares.from_problem(PROBLEM, 1e-14).value(rates)) + floor
    measured = evaluate({"m": GDPlusPlus(rates, 6, 3)}, PROBLEM, num_sequences=200_000, key=KEY).adjusted("m")
    assert abs(loss - measured.mean) < 4.5 * measured.standard_error


def test_one_layer_reaches_its_closed_form():
    _, losses = grow(
        GDPlusPlusGrowth("gd++", KEY, ModelSpec("gd++", 1, NoisyRegression(3, 6, "choice(1,3)")), min_mass=1e-14)
    )
    assert losses[0] == pytest.approx(closed_form.adjusted(closed_form.one_layer_loss(PROBLEM), PROBLEM), rel=1e-9)


def test_gdpp_goes_down_to_its_floor_with_depth():
    _, losses = grow(GDPlusPlusGrowth("gd++", KEY, ModelSpec("gd++", 5, NoisyRegression(3, 30, "choice(1,3)"))))
    problem = NoisyRegression(dim=3, num_examples=30, noise="choice(1,3)")
    floor = closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem)
    assert all(np.diff(losses) < 1e-12)
    assert floor - 1e-9 < losses[-1] < 1.001 * floor


def test_a_known_model_is_tried_at_the_last_depth():
    spec = ModelSpec("diag", 2, NoisyRegression(3, 6, "choice(1,3)"))
    smaller, _ = grow(GDPlusPlusGrowth("gd++", KEY, spec))
    assert isinstance(smaller, GDPlusPlus)
    stage = DiagonalGrowth("diag", KEY, spec, num_validation=8192)
    assert np.array_equal(stage.start({}, WarmStarts(smaller=smaller)).warm_starts[0, ..., :2], smaller.rates)
    model, losses = grow(stage, smaller=smaller)
    measured = evaluate({"diag": model, "gd++": smaller}, spec.problem, num_sequences=50_000, key=KEY)
    better = measured.difference("diag", "gd++")
    assert better.mean < -4 * better.standard_error
    assert losses[1] < losses[0]


def test_two_heads_start_from_one_and_are_never_worse():
    spec = ModelSpec("diag", 2, NoisyRegression(3, 6, "choice(1,3)"))
    one, (*_, loss) = grow(DiagonalGrowth("diag", KEY, spec, num_validation=8192))
    both = replace(spec, num_heads=2)
    stage = DiagonalGrowth("diag", KEY, both, num_validation=8192)
    gram = jnp.cov(jax.random.normal(KEY, (4, 9)))
    spread = stage.from_parameters(stage.start({}, WarmStarts(fewer_heads=one)).warm_starts[0])
    assert spread.num_heads == 2
    np.testing.assert_allclose(spread.final_weights(gram), one.final_weights(gram), rtol=1e-12)
    _, losses = grow(stage, fewer_heads=one)
    assert losses[-1] < 1.001 * loss


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


def test_soap_turns_into_the_eigenbasis_of_a_quadratic():
    """A quadratic that is badly scaled along turned axes: Adam crawls, SOAP does not."""
    left, right = (np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0] for seed in (0, 1))
    goal = np.random.default_rng(2).normal(size=(6, 6))
    scales = jnp.asarray(np.outer(np.logspace(0, -2, 6), np.logspace(0, -2, 6)))

    def loss(x):
        return 0.5 * jnp.sum(scales * (left.T @ (x - goal) @ right) ** 2)

    def run(transform):
        def step(state, index):
            x, inner = state
            move, inner = transform.update(jax.grad(loss)(x), inner)
            return (x - 0.03 * (1 - index / 400) * move, inner), None

        start = jnp.zeros((6, 6)), transform.init(jnp.zeros((6, 6)))
        return float(loss(jax.lax.scan(step, start, jnp.arange(400))[0][0]))

    with jax.numpy_dtype_promotion("standard"):
        assert run(scale_by_soap(every=5)) < 1e-3 * run(optax.scale_by_adam(b2=0.95))
