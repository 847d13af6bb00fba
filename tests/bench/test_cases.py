"""Cases measure what they say. Speeds are not tested."""

import numpy as np
import pytest

from lintra import NoisyRegression, sample_statistics
from lintra.bench.cases import damped_model, damping_case


@pytest.mark.parametrize("family", ["full", "diag"])
def test_contexts_of_a_damping_case_are_inside_or_outside(family):
    problem = NoisyRegression()
    stats, _ = sample_statistics(problem, (2048,), "float32", key=0)
    inside = damped_model(family, problem, outside=False).divisors(stats)
    assert (inside.scaling > 1).mean() < 0.002
    assert (inside.layers > 1).any(axis=1).mean() < 0.005
    outside = damped_model(family, problem, outside=True).divisors(stats)
    assert (outside.scaling > 1).all()
    assert (outside.layers[:, 1:] > 1.05).all()


@pytest.mark.parametrize("family", ["full", "diag"])
def test_both_sides_are_equal_inside_and_differ_outside(family):
    damped, printed = (np.asarray(side()) for side in damping_case(family, gradient=False))
    assert (damped == printed).all(axis=1).mean() > 0.99
    damped, printed = (side()[0] for side in damping_case(family, gradient=True, outside=True))
    assert damped != printed
