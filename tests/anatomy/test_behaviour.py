import jax
import numpy as np
import pytest

import lintra
from anatomy_helpers import KEY
from lintra import NoisyRegression, sample_data, sample_statistics, zoo
from lintra.anatomy import behaviour, implied_noise
from lintra.models import Diagonal, GDPlusPlus
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


def test_the_implied_noise_of_the_bayes_predictor_follows_its_posterior():
    model = GDPlusPlus.random(2, scale=0.05, key=KEY)
    rows = implied_noise(model, "uniform(0,5)", (2.0,), num_sequences=512, key=KEY)
    assert rows[0]["bayes_implied_noise"] == pytest.approx(rows[0]["bayes_posterior_mean"], rel=0.05)


def test_full_with_seven_layers_acts_on_the_noise_level_that_bayes_acts_on():
    rows = implied_noise(
        zoo.load("full-7-uniform(0,5)"), "uniform(0,5)", (1.0, 3.0, 5.0), num_sequences=2048, key=KEY
    )
    for row in rows:
        assert row["implied_noise"] == pytest.approx(row["bayes_implied_noise"], rel=0.02)
        assert row["correlation"] > 0.9
