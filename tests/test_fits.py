from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lintra import NoisyRegression, evaluate
from lintra.evaluation import closed_form
from lintra.models import GDPlusPlus
from lintra.models.diagonal import diagonal_slopes
from lintra.models.spec import Task
from lintra.training.batch import Lesson
from lintra.training.descent.soap import scale_by_soap
from lintra.training.growth import DiagonalGrowth, GDPlusPlusGrowth
from lintra.training.least_squares import SequenceFit, SpectralFit, levenberg_marquardt
from lintra.training.sampling import sample_pool

PROBLEM = NoisyRegression(dim=3, context=6, noise="choice(1,3)")
KEY = jax.random.key(0)


def grow(stage, models=None):
    """Run a stage to its end and return its model and the loss at every depth."""
    material, state, losses = stage.prepare(), stage.start(models or {}), []
    while (done := stage.progress(state))[0] < done[1]:
        state = stage.advance(state, material)
        losses.append(stage.metrics(state)["held_out"])
    return stage.finish(state), losses


@pytest.mark.parametrize("objective", ["bayes", "query"])
def test_slope_and_curvature_of_a_fit_to_sequences(objective):
    """Directions √d eᵢ in turn, whose `v vᵀ` have the identity as their mean, make the curvature exact."""
    pool = sample_pool(PROBLEM, KEY, objective=objective, size=2048)
    numbers = jax.random.normal(KEY, (3, 2, 4)) * 0.3
    errors = jax.jit(jax.jacfwd(lambda x: pool.probed(_weights(x, pool.gram) - pool.target)))
    jacobian = np.asarray(errors(numbers))
    width = jacobian.shape[1]
    directions = width**0.5 * np.broadcast_to(np.eye(width)[:, None], (width, 2048, width))
    bend = jnp.asarray(jnp.inf)
    fits = [SequenceFit(pool, jnp.asarray(v), bend).normal(numbers) for v in directions]
    squares, slopes = zip(*fits, strict=True)
    jacobian = jacobian.reshape(-1, numbers.size)
    assert np.allclose(np.mean(squares, axis=0), jacobian.T @ jacobian / 2048, rtol=1e-9, atol=1e-9)
    assert np.allclose(slopes[0], jax.grad(SequenceFit.of(pool, KEY).value)(numbers).reshape(-1), rtol=1e-9)


def test_a_bent_fit_counts_losses_by_their_logarithm():
    pool = sample_pool(PROBLEM, KEY, objective="bayes", size=2048)
    numbers = jax.random.normal(KEY, (3, 1, 4)) * 0.3
    losses = np.asarray(0.5 * jnp.sum((_weights(numbers[:, :1], pool.gram) - pool.target) ** 2, axis=-1))
    bent = SequenceFit.of(pool, KEY, bend=0.5)
    assert float(bent.value(numbers)) == pytest.approx(0.5 * np.log1p(losses / 0.5).mean(), rel=1e-9)
    assert np.allclose(bent.normal(numbers)[1], jax.grad(bent.value)(numbers).reshape(-1), rtol=1e-9)
    nearly = SequenceFit.of(pool, KEY, bend=1e12)
    plain = SequenceFit.of(pool, KEY)
    assert np.allclose(nearly.normal(numbers)[0], plain.normal(numbers)[0], rtol=1e-6)


def test_a_rare_explosion_does_not_throw_a_bent_fit_away():
    """One sequence with inputs a hundred times as long, on which a model that is good elsewhere explodes."""
    pool = sample_pool(PROBLEM, KEY, objective="bayes", size=4096)
    good, _ = levenberg_marquardt(
        SequenceFit.of(pool, KEY), jnp.full((2, 1, 4), 0.3) * jnp.asarray([1.0, -1, 1, 1]), jnp.ones((2, 1, 4)), 60
    )
    scale = jnp.ones(4096).at[0].set(1e4)[:, None, None]
    rare = Lesson(pool.gram * scale, pool.target, pool.probe)
    before = float(SequenceFit.of(pool, KEY).value(good))
    assert float(SequenceFit.of(rare, KEY).value(good)) > 100 * before
    bent, _ = levenberg_marquardt(SequenceFit.of(rare, KEY, bend=1.0), good, jnp.ones_like(good), 20)
    plain, _ = levenberg_marquardt(SequenceFit.of(rare, KEY), good, jnp.ones_like(good), 20)
    usual = SequenceFit.of(pool, KEY)
    assert float(usual.value(bent)) < 0.5 * float(usual.value(plain))


def _weights(numbers, gram):
    from lintra.models.diagonal import diagonal_recursion

    omega = jnp.einsum("lhi,lhj->lij", numbers[..., :2], numbers[..., 2:])
    return diagonal_recursion(omega, gram, native=False)


def test_slopes_of_weights_are_the_same_natively_and_in_plain_jax():
    pool, omega = sample_pool(PROBLEM, KEY, objective="truth", size=70), jax.random.normal(KEY, (3, 2, 2)) * 0.3
    fast = diagonal_slopes(omega, pool.gram, pool.target)
    slow = diagonal_slopes(omega, pool.gram, pool.target, native=False)
    assert np.allclose(fast, slow, rtol=1e-11, atol=1e-13)


def test_the_spectral_fit_is_the_loss_of_gdpp():
    rates = jnp.asarray([[[-0.2, -0.4]], [[0.0, -0.5]]])
    floor = closed_form.adjusted(closed_form.constant_ridge_loss(PROBLEM), PROBLEM)
    loss = float(SpectralFit.of(PROBLEM, 1e-14).value(rates)) + floor
    measured = evaluate({"m": GDPlusPlus(rates, 6, 3)}, PROBLEM, num_sequences=200_000, key=KEY).adjusted("m")
    assert abs(loss - measured.mean) < 4.5 * measured.standard_error


def test_one_layer_reaches_its_closed_form():
    _, losses = grow(GDPlusPlusGrowth("gd++", KEY, Task("gd++", 1, "choice(1,3)", dim=3, context=6), tail=1e-14))
    assert losses[0] == pytest.approx(closed_form.adjusted(closed_form.one_layer_loss(PROBLEM), PROBLEM), rel=1e-9)


def test_gdpp_goes_down_to_its_floor_with_depth():
    _, losses = grow(GDPlusPlusGrowth("gd++", KEY, Task("gd++", 5, "choice(1,3)", dim=3, context=30)))
    problem = NoisyRegression(dim=3, context=30, noise="choice(1,3)")
    floor = closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem)
    assert all(np.diff(losses) < 1e-12)
    assert floor - 1e-9 < losses[-1] < 1.001 * floor


def test_a_known_model_is_tried_at_the_last_depth():
    task = Task("diag", 2, "choice(1,3)", dim=3, context=6)
    known, _ = grow(GDPlusPlusGrowth("gd++", KEY, task))
    stage = DiagonalGrowth("diag", KEY, task, held_out=8192)
    assert np.array_equal(stage.start({"gd++": known})["known"][0, ..., :2], known.rates)
    model, losses = grow(stage, {"gd++": known})
    measured = evaluate({"diag": model, "gd++": known}, task.problem, num_sequences=50_000, key=KEY)
    better = measured.difference("diag", "gd++")
    assert better.mean < -4 * better.standard_error
    assert losses[1] < losses[0]


def test_two_heads_start_from_one_and_are_never_worse():
    task = Task("diag", 2, "choice(1,3)", dim=3, context=6)
    one, (*_, loss) = grow(DiagonalGrowth("diag", KEY, task, held_out=8192))
    both = replace(task, heads=2)
    stage = DiagonalGrowth("diag", KEY, both, held_out=8192)
    gram = jnp.cov(jax.random.normal(KEY, (4, 9)))
    spread = stage.model(stage.start({"fewer-heads": one})["known"][0])
    assert spread.num_heads == 2
    np.testing.assert_allclose(spread.final(gram), one.final(gram), rtol=1e-12)
    _, losses = grow(stage, {"fewer-heads": one})
    assert losses[-1] < 1.001 * loss


@pytest.mark.parametrize("kind", [GDPlusPlusGrowth, DiagonalGrowth])
def test_perturbations_follow_the_key_of_the_stage(kind):
    def draw(seed):
        task = Task("diag", 3, "choice(1,3)", dim=3, context=6)
        factors, orders = zip(*kind("name", jax.random.key(seed), task).perturbations((3, 1, 4)), strict=True)
        return np.asarray(factors), np.asarray(orders)

    first, again, other = draw(0), draw(0), draw(1)
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not np.isclose(first[0], other[0]).any(axis=(1, 2, 3)).all()
    assert abs(np.corrcoef(first[0].ravel() - 1, other[0].ravel() - 1)[0, 1]) < 4.5 / first[0].size ** 0.5
    assert not np.array_equal(first[1], other[1])


def test_a_search_starts_from_the_perturbed_numbers_of_its_key():
    """With no iterations of the fit, the best of the perturbed numbers is what is found."""
    task = Task("gd++", 2, "choice(1,3)", dim=3, context=6)
    numbers, worst = jnp.asarray([[[-0.2, -0.4]], [[0.1, -0.5]]]), jnp.asarray(jnp.inf)

    def search(seed):
        stage = GDPlusPlusGrowth("gd++", jax.random.key(seed), task, hops=5, glance=0)
        return stage, np.asarray(stage.search(stage.prepare(), numbers, worst)[0])

    stage, found = search(0)
    np.testing.assert_array_equal(search(0)[1], found)
    assert not np.allclose(search(1)[1], found)
    factors, order = next(iter(stage.perturbations(numbers.shape)))
    stage = replace(stage, hops=1)
    first = stage.search(stage.prepare(), numbers, worst)[0]
    np.testing.assert_allclose(first, (numbers * factors)[order], rtol=1e-12)


def test_a_fit_never_takes_a_step_that_overflows():
    pool = sample_pool(PROBLEM, KEY, objective="bayes", size=2048)
    steep = jnp.full((4, 1, 4), 30.0)
    numbers, value = levenberg_marquardt(SequenceFit.of(pool, KEY), steep, jnp.ones_like(steep), 5)
    assert np.isfinite(numbers).all()
    assert not np.isnan(value)
    calm = steep / 100
    fit = SequenceFit.of(pool, KEY)
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
