import numpy as np
import pytest

from lintra.evaluation.estimate import Estimate, Moments, ProtocolQuantiles, Tail, share_of_largest


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
    assert tail.is_dominated


@pytest.mark.parametrize(
    ("losses", "is_dominated"),
    [
        (np.ones(1000), False),
        (np.ones(90), True),  # ten of 90 are more than a tenth
        (np.append(np.ones(100_000), np.inf), True),
        (1e-28 * np.exp(np.random.default_rng(0).normal(0, 4, size=1000)), False),  # rounding
    ],
)
def test_a_mean_is_dominated_if_ten_sequences_have_more_than_a_tenth(losses, is_dominated):
    assert Tail.from_values(losses, 0.0).is_dominated is is_dominated


def test_the_share_of_the_largest_is_that_of_the_worst_set():
    sets = np.ones((3, 100))
    sets[1, 7] = 100.0
    assert share_of_largest(sets, 1) == pytest.approx(100 / 199)
    assert share_of_largest(1e306 * sets, 1) == pytest.approx(100 / 199)  # though the sum overflows
    sets[2, 0] = np.inf
    assert np.isnan(share_of_largest(sets, 1))


def test_medians_scatter_as_their_errors_say():
    rng = np.random.default_rng(0)
    for summary, scale in ((Estimate.median, 1.2533), (Estimate.median_of_means, 1.17)):
        found = [summary(rng.normal(3, 2, size=1000)) for _ in range(400)]
        spread = np.std([estimate.mean for estimate in found])
        assert abs(np.mean([estimate.mean for estimate in found]) - 3) < 4 * spread / 20
        assert spread == pytest.approx(scale * 2 / 1000**0.5, rel=0.12)
        assert np.mean([estimate.standard_error for estimate in found]) == pytest.approx(spread, rel=0.2)


def test_a_median_of_means_is_that_of_the_other_parts_where_one_sequence_explodes():
    losses = np.random.default_rng(0).exponential(size=10_000)
    before = Estimate.median_of_means(losses)
    losses[17] = np.inf
    after = Estimate.median_of_means(losses)
    assert np.isfinite(after.mean)
    assert abs(after.mean - before.mean) < 3 * before.standard_error
    losses[::1000] = np.inf  # in every part
    assert Estimate.median_of_means(losses).mean == np.inf


def test_quantiles_of_repetitions_may_be_infinite():
    means = np.array([1.0] * 8 + [np.inf] * 2)
    assert ProtocolQuantiles.from_means(means) == ProtocolQuantiles(1.0, 1.0, np.inf)
    assert ProtocolQuantiles.from_means(np.full(5, np.inf)).low == np.inf
    by_law = ProtocolQuantiles.from_losses(np.array([1.0, np.inf]), num_sequences=10)
    assert (by_law.low, by_law.high) == (-np.inf, np.inf)


def test_running_moments_are_those_of_all_values():
    values = np.random.default_rng(0).normal(3, 2, size=1000)
    running = Moments().add(values[:300]).add(values[300:]).estimate()
    whole = Estimate.from_values(values)
    assert running.mean == pytest.approx(whole.mean)
    assert running.standard_error == pytest.approx(whole.standard_error)
