import numpy as np
import pytest

from anatomy_helpers import KEY, from_omegas
from lintra import zoo
from lintra.anatomy import implied_noise
from lintra.models import GDPlusPlus


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


def test_weights_far_from_every_ridge_solution_have_a_large_distance():
    sizes = {"num_sequences": 256, "key": KEY}
    (zero,) = implied_noise(from_omegas((0, 0, 0, 0)), "uniform(0,5)", (1.0,), **sizes)
    assert zero["distance"] == pytest.approx(1.0, rel=1e-12)
    (against,) = implied_noise(from_omegas((0, 0, 0.02, 0)), "uniform(0,5)", (1.0,), **sizes)
    assert against["distance"] > 1
    (near,) = implied_noise(zoo.load("gd++-4-uniform(0,1)"), "uniform(0,1)", (0.5,), **sizes)
    assert near["distance"] < 1e-4


def test_weights_that_are_not_finite_imply_no_noise_level():
    model = from_omegas(*[(0.5, 1, -5, 1)] * 7)
    (row,) = implied_noise(model, "uniform(0,5)", (1.0,), num_sequences=64, key=KEY)
    assert row["overflowed"] == 64
    assert np.isnan(row["implied_noise"])
    assert row["correlation"] is None
