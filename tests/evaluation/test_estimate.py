import numpy as np
import pytest

from lintra.evaluation.estimate import Estimate, Moments, ProtocolQuantiles, Tail


def test_the_protocol_by_the_normal_law_covers_its_repetitions():
    """With few losses the range has the error of their mean as well, so nine in ten repetitions lie in it."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(400):
        quantiles = ProtocolQuantiles.from_losses(rng.normal(3, 2, size=500), num_sequences=250)
        inside.append(quantiles.low < rng.normal(3, 2, size=250).mean() < quantiles.high)
    assert abs(np.mean(inside) - 0.9) < 4 * (0.9 * 0.1 / 400) ** 0.5


def test_tails_show_what_a_mean_hides():
    losses = np.concatenate([np.full(9_990, 1.0), np.full(10, 1e6)])
    tail = Tail.from_values(losses, 0.001)
    assert tail.median == 1.0
    assert tail.trimmed_mean == 1.0
    assert tail.worst == 1e6
    assert tail.top_ten_share == pytest.approx(1e7 / (1e7 + 9_990))


def test_running_moments_are_those_of_all_values():
    values = np.random.default_rng(0).normal(3, 2, size=1000)
    running = Moments().add(values[:300]).add(values[300:]).estimate()
    whole = Estimate.from_values(values)
    assert running.mean == pytest.approx(whole.mean)
    assert running.standard_error == pytest.approx(whole.standard_error)
