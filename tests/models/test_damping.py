"""Damped models: as printed inside of the range of training, the formula outside, and the same everywhere."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import NoisyRegression, load, plain_jax, sample_data, sample_statistics, save, tokens
from lintra.models import FAMILIES, GDPlusPlus
from lintra.models.damping import Damping, divisor
from lintra.models.thresholds import measure_damping
from lintra.statistics.gram import GramStatistics
from members import KEY

DIM, NUM_EXAMPLES, NUM_LAYERS = 3, 8, 4
PROBLEM = NoisyRegression(DIM, NUM_EXAMPLES, "uniform(0,2)")


def small_model(family, num_heads=1):
    return FAMILIES[family].random(
        NUM_LAYERS, dim=DIM, num_examples=NUM_EXAMPLES, num_heads=num_heads, scale=0.4, key=KEY
    )


@pytest.fixture(scope="module", params=[(family, heads) for family in FAMILIES for heads in (1, 2)], ids=str)
def damped(request):
    model = small_model(*request.param)
    return model.with_damping(measure_damping(model, PROBLEM, num_sequences=2000, quantile=0.9))


@pytest.fixture(scope="module")
def unusual():
    """Contexts of which most are outside of the range: long inputs, large labels, and no examples at all."""
    x, y, _ = sample_data(PROBLEM, (40,), key=3)
    x = np.array(x) * np.repeat([1.0, 3.0, 10.0, 1.0], 10)[:, None, None]
    y = np.array(y) * np.repeat([1.0, 3.0, 10.0, 40.0], 10)[:, None]
    x[-1], y[-1] = 0.0, 0.0
    return x, y


def test_inside_of_the_range_a_damped_model_is_the_printed_one_to_the_last_bit(damped):
    stats, _ = sample_statistics(PROBLEM, (64,), key=5)
    wide = damped.with_damping(Damping(np.full(NUM_LAYERS, 1e6), np.full(NUM_LAYERS, 1e6), 1e6))
    small = GramStatistics(stats.gram / 100, stats.num_examples)
    for model in (wide, damped):
        assert (model.weights(small) == model.without_damping().weights(small)).all()
        assert (model.layer_weights(small) == model.without_damping().layer_weights(small)).all()


def test_a_damped_model_is_the_formula_token_by_token(damped, unusual):
    P, Q = map(jnp.asarray, damped.matrices())
    query = jnp.asarray([0.3, -1.2, 0.7])
    for x, y in zip(*(values[::7] for values in unusual), strict=True):
        history = tokens.forward(P, Q, jnp.asarray(x), jnp.asarray(y), query, damping=damped.damping)
        expected = jnp.stack([-layer[-1, -1] for layer in history])
        stats = GramStatistics.from_data(x, y)
        found = damped.layer_weights(stats) @ query
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(damped.weights(stats) @ query, expected[-1], rtol=1e-10, atol=1e-12)


def divisors_of_tokens(model, x, y):
    """The divisors of one context, from the tokens before every layer."""
    P, Q = map(jnp.asarray, model.matrices())
    history = tokens.forward(P, Q, jnp.asarray(x), jnp.asarray(y), jnp.zeros(DIM), damping=model.damping)
    context = np.concatenate([x, y[:, None]], axis=1)
    norm = np.linalg.norm(np.linalg.eigvalsh(x.T @ x), ord=4)
    scaling = max(1, np.sum(x**2) / model.damping.trace, min(norm / model.damping.rho[0], 1.2))
    before = [context, *(np.asarray(layer[:-1]) for layer in history[:-1])]
    grams = [layer.T @ layer / scaling for layer in before]
    ratios = [
        (np.linalg.norm(np.linalg.eigvalsh(gram[:-1, :-1]), ord=4) / rho, gram[-1, -1] / kappa)
        for gram, rho, kappa in zip(grams, model.damping.rho, model.damping.kappa, strict=True)
    ]
    return scaling, np.asarray(ratios)


def test_divisors_are_those_of_the_tokens_with_any_batch_axes(damped, unusual):
    stats = GramStatistics.from_data(*(values.reshape(4, 10, *values.shape[1:]) for values in unusual))
    found = damped.divisors(stats)
    for number, (x, y) in enumerate(zip(*unusual, strict=True)):
        scaling, ratios = divisors_of_tokens(damped, x, y)
        here = jax.tree.map(lambda leaf, number=number: leaf[number // 10, number % 10], found)
        np.testing.assert_allclose(here.scaling, scaling, rtol=1e-12)
        np.testing.assert_allclose(here.input_ratios, ratios[:, 0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(here.label_ratios, ratios[:, 1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(here.layers, np.maximum(1, ratios.max(axis=1)), rtol=1e-9)
    assert (found.scaling > 1).any()
    assert (found.layers > 1 + 1e-9).any(axis=(0, 1)).sum() >= 2
    one = damped.divisors(GramStatistics.from_data(unusual[0][12], unusual[1][12]))
    np.testing.assert_allclose(one.layers, found.layers[1, 2], rtol=1e-12)


def test_divisors_are_one_without_damping_and_finite_for_any_data(damped, unusual):
    stats = GramStatistics.from_data(*unusual)
    printed = damped.without_damping().divisors(GramStatistics(stats.gram / 100, stats.num_examples))
    assert (printed.scaling == 1).all()
    assert (printed.layers == 1).all()
    assert printed.layers.shape == (40, NUM_LAYERS)
    large = damped.divisors(GramStatistics(stats.gram * 1e200, stats.num_examples))
    assert all(jnp.isfinite(leaf).all() for leaf in (*jax.tree.leaves(large), large.scaling, large.layers))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernel_and_plain_jax_agree_on_damped_contexts_in_weights_and_gradients(damped, unusual, dtype):
    stats = GramStatistics.from_data(*unusual)
    gram = (stats.gram / NUM_EXAMPLES).astype(dtype)
    target = jnp.ones((len(gram), DIM), dtype)
    model = jax.tree.map(lambda leaf: leaf.astype(dtype), damped)

    def gradients(model, gram):
        by_model, by_gram = jax.grad(lambda m, g: jnp.tanh(m.final_weights(g)).sum(), argnums=(0, 1))(model, gram)
        of_loss = jax.grad(lambda m: m.loss(gram, target, clip_norm=0.5))(model)
        return by_model.parameters(), by_model.damping.rho, by_gram, of_loss.parameters()

    found = model.final_weights(gram), gradients(model, gram)
    with plain_jax():
        expected = model.final_weights(gram), gradients(model, gram)
    eps = float(jnp.finfo(dtype).eps)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert jnp.abs(one - other).max() <= 2e4 * eps * (1 + jnp.abs(other).max())


def test_gradients_are_those_of_finite_differences(damped, unusual):
    gram = GramStatistics.from_data(unusual[0][5:35:3], unusual[1][5:35:3]).gram / NUM_EXAMPLES

    def loss(model):
        return jnp.tanh(model.final_weights(gram)).sum()

    gradient = jax.grad(loss)(damped)
    direction = jax.tree.map(lambda leaf: jnp.cos(jnp.arange(leaf.size, dtype=float)).reshape(leaf.shape), damped)
    moved = [
        loss(jax.tree.map(lambda leaf, along, step=step: leaf + step * along, damped, direction))
        for step in (1e-7, -1e-7)
    ]
    along = sum(
        jnp.vdot(one, other)
        for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
    )
    np.testing.assert_allclose((moved[0] - moved[1]) / 2e-7, along, rtol=1e-5, atol=1e-6)


def test_every_family_has_the_damped_weights_of_full(damped, unusual):
    stats = GramStatistics.from_data(*unusual)
    full = damped.to_full()
    np.testing.assert_allclose(full.weights(stats), damped.weights(stats), rtol=1e-9, atol=1e-11)


def test_damped_gdpp_in_the_eigenbasis_is_the_recursion(unusual):
    model = small_model("gd++")
    assert isinstance(model, GDPlusPlus)
    damped = model.with_damping(measure_damping(model, PROBLEM, num_sequences=2000, quantile=0.9))
    stats = GramStatistics.from_data(*unusual)
    np.testing.assert_allclose(damped.spectral_weights(stats), damped.layer_weights(stats), rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match=r"`spectral_loss` is defined for the model as printed.*without_damping"):
        damped.spectral_loss(jnp.ones(3), 1.0, 0.0)


def test_the_context_is_scaled_and_weights_stay_finite_for_any_data(damped, unusual):
    """Where inputs and labels grow together, the weights do not change any more."""
    stats = GramStatistics.from_data(*unusual)
    large = [damped.weights(GramStatistics(stats.gram * factor, stats.num_examples)) for factor in (1e8, 1e150)]
    assert jnp.isfinite(large[1]).all()
    np.testing.assert_allclose(*large, rtol=1e-9, atol=1e-12)


def test_squares_do_not_overflow_in_32_bits(damped):
    model = jax.tree.map(lambda leaf: leaf.astype("float32"), damped)
    gram = jnp.asarray(np.full((2, DIM + 1, DIM + 1), 1e30), "float32")
    assert jnp.isfinite(model.final_weights(gram)).all()
    with plain_jax():
        assert jnp.isfinite(model.final_weights(gram)).all()


@pytest.mark.parametrize(
    ("family", "exponent"), [*(("full", power) for power in (-73, -64, 20, 80)), ("diag", 20)]
)
def test_the_unit_of_the_data_does_not_decide_what_is_inside(family, exponent):
    """P/c with thresholds c times as large does for a Gram matrix c G what P does for G.

    In 32 bits squares are zero at c = 2^-73, some of them at 2^-64, and infinite at 2^80. DIAG has cubes too.
    """
    thresholds = np.full(NUM_LAYERS, 4.0), np.full(NUM_LAYERS, 1e6)
    model = FAMILIES[family].random(NUM_LAYERS, dim=5, num_examples=1, scale=0.05, key=KEY)
    # Ratios from 0.9 to 1.1, with large entries off the diagonal
    root = np.random.default_rng(1).normal(np.asarray([1.0, -1.0, 1.0, -1.0, 1.0, 0.3]), size=(64, 6, 6))
    gram = np.swapaxes(root, -1, -2) @ root
    norms = np.linalg.norm(np.linalg.eigvalsh(gram[:, :-1, :-1]), ord=4, axis=1)
    gram = gram * (4.0 * np.linspace(0.9, 1.1, 64) / norms)[:, None, None]
    factor = 2.0**exponent
    models = {
        c: type(model)
        .from_parameters({"p": model.parameters()["p"] / c, "q": model.parameters()["q"]}, 1, 5)
        .with_damping(Damping(c * thresholds[0], c * thresholds[1]))
        for c in (1.0, factor)
    }
    weights = [
        jax.tree.map(lambda leaf: leaf.astype("float32"), models[c]).final_weights(
            jnp.asarray(c * gram, "float32")
        )
        for c in (1.0, factor)
    ]
    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-5, atol=1e-7)
    with plain_jax():
        np.testing.assert_allclose(models[1.0].final_weights(jnp.asarray(gram)), weights[0], rtol=1e-4, atol=1e-6)


def test_the_divisor_has_a_derivative_at_zero():
    gradient = jax.grad(lambda gram: divisor(gram, jnp.asarray([2.0, 3.0, 4.0])))(jnp.zeros((4, 4)))
    assert (gradient == 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_thresholds_are_quantiles_on_sequences_of_the_problem(family):
    """The slow twin, with eigenvalues and one matrix after the other, on the same sequences."""
    model, num_sequences = small_model(family, num_heads=2), 500
    damping = measure_damping(model, PROBLEM, num_sequences=num_sequences, quantile=0.9, key=9)
    stats, _ = sample_statistics(PROBLEM, (num_sequences,), key=9)
    gram = np.asarray(stats.gram)
    traces = np.trace(gram[:, :-1, :-1], axis1=1, axis2=2)
    np.testing.assert_allclose(damping.trace, np.quantile(traces, 0.9), rtol=1e-12)
    gram = gram / np.maximum(1, traces / damping.trace)[:, None, None]
    norms = np.linalg.norm(np.linalg.eigvalsh(gram[:, :-1, :-1]), ord=4, axis=1)
    np.testing.assert_allclose(damping.rho[0], np.quantile(norms, 0.9), rtol=1e-9)
    gram = np.asarray(stats.gram)
    norms = np.linalg.norm(np.linalg.eigvalsh(gram[:, :-1, :-1]), ord=4, axis=1)
    scaling = np.maximum(traces / damping.trace, np.minimum(norms / damping.rho[0], 1.2))
    gram = gram / np.maximum(1, scaling)[:, None, None]
    label_axis = np.diag(np.append(np.zeros(DIM), 1.0))
    for layer, (p, q, rho, kappa) in enumerate(zip(*model.matrices(), damping.rho, damping.kappa, strict=True)):
        norms = np.linalg.norm(np.linalg.eigvalsh(gram[:, :-1, :-1]), ord=4, axis=1)
        labels = gram[:, -1, -1]
        if layer:
            np.testing.assert_allclose(rho, np.quantile(norms, 0.9), rtol=1e-9)
        # In units in which inputs and labels have size one, λ's part of the step is D⁻¹ Σₖ Pₖ D e e' D Qₖ D.
        largest = np.quantile(labels, 0.9)
        units = np.diag(np.sqrt(np.append(np.full(DIM, rho), largest)))
        heads = (
            np.linalg.inv(units) @ pk @ units @ label_axis @ units @ qk @ units
            for pk, qk in zip(p, q, strict=True)
        )
        norm = np.linalg.norm(sum(heads))
        if family == "gd++":
            assert norm == 0
            assert np.isinf(kappa)
        else:
            np.testing.assert_allclose(kappa, largest * max(1, 1 / norm), rtol=1e-9)
        r = np.maximum(np.maximum(1, norms / rho), labels / kappa)
        t = np.eye(DIM + 1) + sum(pk @ (gram / r[:, None, None]) @ qk for pk, qk in zip(p, q, strict=True))
        gram = t @ gram @ t.transpose(0, 2, 1)


def test_labels_of_another_scale_have_the_same_damping(damped, unusual):
    x, y = unusual
    scaled = damped.for_label_scale(7.0).weights(GramStatistics.from_data(x, 7.0 * y))
    np.testing.assert_allclose(scaled, 7.0 * damped.weights(GramStatistics.from_data(x, y)), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("active", [False, True])
def test_a_file_keeps_the_damping(damped, tmp_path, active):
    model = damped if active else damped.without_damping()
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert (again.damping is not None) == active
    thresholds = again.with_damping().damping
    assert thresholds is not None
    assert (thresholds.rho == damped.damping.rho).all()
    assert (thresholds.kappa == damped.damping.kappa).all()


RECORD = {"kind": "hard", "rho": [1.0, 1.0], "kappa": [1.0, None], "trace": None}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([1], "`damping` must be an object"),
        ({"kind": "hard", "rho": [1.0], "kappa": [1.0]}, "`damping` must be an object with .*`trace`"),
        (RECORD | {"kind": "soft"}, "`kind` must be one of hard"),
        (RECORD | {"rho": [1.0]}, "`rho` must be a list of 2 positive numbers"),
        (RECORD | {"rho": [1.0, -1.0]}, "`rho` must be a list of 2 positive"),
        (RECORD | {"rho": [1.0, True]}, "`rho` must be a list of 2 positive"),
        (RECORD | {"rho": [1.0, 10**400]}, "`rho` must be a list of 2 positive"),
        (RECORD | {"kappa": [1.0, "x"]}, "`kappa` must be a list of 2 positive"),
        (RECORD | {"trace": 0}, "`trace` must be a positive number"),
        (RECORD | {"trace": [1.0]}, "`trace` must be a positive number"),
    ],
)
def test_thresholds_of_a_file_are_validated(record, message):
    with pytest.raises(ValueError, match=message):
        Damping.from_json(json.loads(json.dumps(record)), 2)


def test_a_model_without_thresholds_says_what_to_do():
    with pytest.raises(ValueError, match=r"`damping` must be given.*noise prior of its training"):
        small_model("diag").with_damping()
    with pytest.raises(ValueError, match="must have thresholds for 4 layers, got 2"):
        small_model("diag").with_damping(Damping(np.ones(2)))
    with pytest.raises(ValueError, match="`rho` must be one positive number for each layer"):
        Damping(np.asarray([1.0, 0.0]))


def test_the_problem_of_training_or_its_prior_gives_thresholds():
    model = small_model("diag")
    by_problem, by_prior = (model.with_damping(given).damping for given in (PROBLEM, "uniform(0,2)"))
    assert by_problem is not None
    assert (by_problem.rho == measure_damping(model, PROBLEM).rho).all()
    assert by_prior is not None
    assert (by_prior.rho == by_problem.rho).all()
