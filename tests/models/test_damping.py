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
    wide = damped.with_damping(Damping(np.full(NUM_LAYERS, 1e6), np.full(NUM_LAYERS, 1e6)))
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
        for step in (1e-6, -1e-6)
    ]
    along = sum(
        jnp.vdot(one, other)
        for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
    )
    np.testing.assert_allclose((moved[0] - moved[1]) / 2e-6, along, rtol=1e-5, atol=1e-6)


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


def test_the_divisor_has_a_derivative_at_zero():
    gradient = jax.grad(lambda gram: divisor(gram, jnp.asarray([2.0, 3.0])))(jnp.zeros((4, 4)))
    assert (gradient == 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_thresholds_are_quantiles_on_sequences_of_the_problem(family):
    """A tenth of the sequences is outside of each layer's range, to four standard errors."""
    model, num_sequences = small_model(family), 4000
    damping = measure_damping(model, PROBLEM, num_sequences=num_sequences, quantile=0.9)
    stats, _ = sample_statistics(PROBLEM, (num_sequences,), key=9)
    gram = np.asarray(stats.gram)
    P, Q = model.matrices()
    norms = np.linalg.norm(gram[:, :-1, :-1], axis=(1, 2))
    gram = gram / np.maximum(1, norms / damping.rho[0])[:, None, None]
    for layer in range(NUM_LAYERS):
        if layer:
            norms = np.linalg.norm(gram[:, :-1, :-1], axis=(1, 2))
        assert abs((norms > damping.rho[layer]).mean() - 0.1) < 4 * (2 * 0.09 / num_sequences) ** 0.5
        r = np.maximum(np.maximum(1, norms / damping.rho[layer]), gram[:, -1, -1] / damping.kappa[layer])
        r = np.maximum(r, 1) if layer else np.maximum(1, gram[:, -1, -1] / damping.kappa[0])
        t = np.eye(DIM + 1) + sum(
            p @ (gram / r[:, None, None]) @ q for p, q in zip(P[layer], Q[layer], strict=True)
        )
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


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([1], "`damping` must be an object"),
        ({"kind": "soft", "rho": [1.0], "kappa": [1.0]}, "`kind` must be one of hard"),
        ({"kind": "hard", "rho": [1.0], "kappa": [1.0]}, "`rho` must be a list of 2 positive numbers"),
        ({"kind": "hard", "rho": [1.0, -1.0], "kappa": [1.0, 1.0]}, "`rho` must be a list of 2 positive"),
        ({"kind": "hard", "rho": [1.0, True], "kappa": [1.0, 1.0]}, "`rho` must be a list of 2 positive"),
        ({"kind": "hard", "rho": [1.0, 1.0], "kappa": [1.0, "x"]}, "`kappa` must be a list of 2 positive"),
    ],
)
def test_thresholds_of_a_file_are_validated(record, message):
    with pytest.raises(ValueError, match=message):
        Damping.from_json(json.loads(json.dumps(record)), 2)


def test_a_model_without_thresholds_says_what_to_do():
    with pytest.raises(ValueError, match=r"`damping` must be given.*measure_damping"):
        small_model("diag").with_damping()
    with pytest.raises(ValueError, match="must have thresholds for 4 layers, got 2"):
        small_model("diag").with_damping(Damping(np.ones(2)))
    with pytest.raises(ValueError, match="`rho` must be one positive number for each layer"):
        Damping(np.asarray([1.0, 0.0]))
