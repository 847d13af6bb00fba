import numpy as np
import pytest

from lintra import NoisyRegression
from lintra.evaluation import closed_form
from lintra.models.spec import ModelSpec
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from training_helpers import KEY, PROBLEM, grow


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
