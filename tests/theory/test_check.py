import numpy as np

from lintra.theory import Check, LineFit


def test_relations():
    assert Check("c", "s", 1.0, 1.05, 0.1).holds
    assert not Check("c", "s", 1.0, 1.2, 0.1).holds
    assert Check("c", "s", 1.0, 0.95, 0.1, "≤").holds
    assert not Check("c", "s", 1.2, 1.0, 0.1, "≤").holds
    assert not Check("c", "s", 0.8, 1.0, 0.1, "≥").holds
    assert not Check("c", "s", float("nan"), 0.0, 1.0).holds
    assert Check("c", "s", 1.0, 0.0, 0.1, misprint=True).expected


def test_a_slope_covers_the_truth_as_often_as_it_says():
    rng, x = np.random.default_rng(0), np.linspace(0, 1, 6)
    error = np.asarray([0.1, 0.2, 0.1, 0.3, 0.1, 0.2])
    intervals = [LineFit.fit(x, 2 * x + error * rng.normal(size=6), error).interval for _ in range(2000)]
    share = np.mean([low < 2.0 < high for low, high in intervals])
    assert abs(share - 0.95) < 4 * (0.05 * 0.95 / 2000) ** 0.5
