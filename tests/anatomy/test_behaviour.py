import warnings

import jax
import numpy as np
import pytest

import lintra
from anatomy_helpers import KEY, from_omegas
from lintra import NoisyRegression, sample_data, sample_statistics
from lintra.anatomy import behaviour
from lintra.anatomy.behaviour import sample_contexts
from lintra.models import Diagonal
from lintra.models.damping import Damping
from lintra.theory.implicit import momentum_step


def test_behaviour_is_that_of_lemma_4_4():
    model = Diagonal.random(3, dim=4, num_examples=8, scale=0.3, key=KEY)
    problem = NoisyRegression(4, 8, "fixed(1)")
    rows = behaviour(model, (1.0,), num_sequences=64, key=KEY)
    stats, _ = sample_statistics(problem, (64,), key=KEY)
    omega = np.asarray(model.omega) / 8
    moved = jax.tree.map(np.asarray, model.implicit(stats))
    square = np.asarray(stats.yy)
    assert rows[0]["rescaling"] == pytest.approx(1 + omega[0, 1, 1] * square.mean(), rel=1e-12)
    assert rows[0]["step"] == pytest.approx(-omega[0, 1, 0], rel=1e-12)
    assert rows[0]["momentum"] is None
    assert rows[2]["label"] == pytest.approx(moved.a[:, 1].mean(), rel=1e-9)
    x, y, _ = sample_data(problem, key=KEY)
    data = lintra.GramStatistics.from_data(x, y)
    one = jax.tree.map(np.asarray, model.implicit(data))
    before = one.M[0], one.u[0], one.w[0], one.a[0]
    new_u, new_w, _ = momentum_step(omega[1], before, np.asarray(x), np.asarray(y))
    np.testing.assert_allclose(new_u, one.u[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(new_w, one.w[1], rtol=1e-9, atol=1e-12)


def test_standard_errors_are_those_of_repeated_measurements():
    model = from_omegas((-0.02, -0.001, -0.02, -0.001), (0, -0.001, -0.02, 0.001), num_examples=8, dim=3)
    repeated = [behaviour(model, (1.0,), num_sequences=2000, key=key)[1] for key in range(60)]
    columns = [name for name in repeated[0] if f"{name}_standard_error" in repeated[0]]
    assert len(columns) == 7
    for column in columns:
        spread = np.std([row[column] for row in repeated], ddof=1)
        stated = np.mean([row[f"{column}_standard_error"] for row in repeated])
        assert 0.7 < stated / spread < 1.4, column  # √(2 · 59) = 10.9: within four errors of the spread


def test_a_damped_model_is_measured_with_its_damping():
    model = from_omegas((0, 0, -0.02, -0.0003), (0, 0, -0.02, -0.0003))
    damped = model.with_damping(Damping(np.asarray([1.0, 1.0])))
    rows = behaviour(damped, (1.0,), num_sequences=64, key=KEY)
    stats = sample_contexts(damped, 1.0, 64, KEY)
    weights = np.asarray(damped.implicit(stats).w)
    divisors = damped.divisors(stats)
    alpha = np.asarray(stats.xy) / np.asarray(divisors.scaling)[:, None]
    expected = 0.02 * alpha / np.asarray(divisors.layers)[:, :1]
    np.testing.assert_allclose(weights[:, 0], expected, rtol=1e-9)
    ratio = (expected * alpha).sum() / (alpha**2).sum()
    assert rows[0]["step"] == pytest.approx(ratio, rel=1e-9)


def test_a_model_that_overflows_counts_the_contexts_and_warns_of_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = behaviour(from_omegas(*[(0.5, 1, -5, 1)] * 7), (1.0,), num_sequences=64, key=KEY)
    assert [rows[0]["overflowed"], rows[-1]["overflowed"]] == [0, 64]
    assert not np.isfinite(rows[-1]["step"])


def test_all_zeros_do_nothing_and_have_no_momentum():
    (row,) = behaviour(from_omegas((0, 0, 0, 0)), (1.0,), num_sequences=64, key=KEY)
    assert (row["rescaling"], row["step"], row["momentum"], row["memory"]) == (1.0, 0.0, None, 0.0)
    assert row["step_standard_error"] == 0
