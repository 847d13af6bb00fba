import numpy as np
import pytest

from lintra.evaluation.trimmed_losses import TrimmedMeans
from lintra.zoo.collection import UnknownModelError


def trimmed(**losses):
    return TrimmedMeans.from_losses({(name, None): values for name, values in losses.items()})


def test_one_sequence_in_a_thousand_has_no_effect():
    losses = np.random.default_rng(0).exponential(size=5000)
    exploded = losses.copy()
    exploded[np.argsort(losses)[-5:]] = [1e100, np.inf, 1e9, np.inf, 1e300]
    one, other = trimmed(a=losses).estimate("a"), trimmed(a=exploded).estimate("a")
    assert one == other
    assert one.mean == pytest.approx(np.sort(losses)[:4995].mean())


def test_more_infinite_losses_leave_no_finite_error():
    losses = np.ones(5000)
    losses[:6] = np.inf
    assert not np.isfinite(trimmed(a=losses, b=np.ones(5000)).difference("a", "b").standard_error)


def test_errors_are_those_of_repeated_measurements():
    """Standard deviations over 400 repetitions, which have errors of 3.5 %, of correlated heavy-tailed losses."""
    rng = np.random.default_rng(1)
    means, differences, ratios = [], [], []
    for _ in range(400):
        common = rng.standard_normal(2000)
        a = np.exp(common + 0.5 * rng.standard_normal(2000))
        b = 1 + np.exp(common + 0.5 * rng.standard_normal(2000))
        found = trimmed(a=a, b=b)
        means.append(found.estimate("a"))
        differences.append(found.difference("a", "b"))
        ratios.append(found.ratio("a", "b"))
    for estimates in (means, differences, ratios):
        spread = np.std([estimate.mean for estimate in estimates])
        assert np.mean([estimate.standard_error for estimate in estimates]) == pytest.approx(spread, rel=0.12)


def test_equal_losses_have_no_difference_and_ratio_one():
    losses = np.random.default_rng(2).exponential(size=3000)
    found = trimmed(a=losses, b=losses.copy())
    assert found.difference("a", "b").mean == 0
    assert found.difference("a", "b").standard_error == pytest.approx(0, abs=1e-9)
    assert found.ratio("a", "b").mean == 1


def test_a_predictor_that_was_not_measured_is_named():
    found = TrimmedMeans.from_losses({("a", 1): np.ones(10), ("b", None): np.ones(10)})
    with pytest.raises(UnknownModelError, match=r"^c is missing\.$"):
        found.estimate("c")
    with pytest.raises(UnknownModelError, match=r"^a after layer 2 is missing\.$"):
        found.difference(("a", 2), "b")
