import warnings

import numpy as np
import pytest

from lintra import GramStatistics, solve
from lintra.regression.soundness import UnsoundWarning
from regression_helpers import contexts


def test_standardised_contexts_are_those_that_were_standardised_by_hand():
    x, y, _ = contexts(20, 15, 4)
    scale, shift = np.asarray([1e-3, 1.0, 20.0, 1e5]), np.asarray([0.0, 5.0, -100.0, 1e5])
    x, y = x * scale + shift, y + 7
    mean, deviation = x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True)
    by_hand = solve((x - mean) / deviation, y - y.mean(axis=1, keepdims=True)) / deviation[:, 0]
    found = solve(x, y, standardise=True, fit_intercept=True)
    np.testing.assert_allclose(found[:, :4], by_hand, rtol=1e-9)
    np.testing.assert_allclose(found[:, 4], y.mean(axis=1) - np.sum(by_hand * mean[:, 0], axis=1), rtol=1e-9)
    root = np.sqrt(np.mean(x**2, axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundWarning)
        only_scaled, expected = solve(x, y, standardise=True), solve(x / root[:, None], y) / root
        by_statistics = solve(GramStatistics.from_data(x, y), standardise=True)
    np.testing.assert_allclose(only_scaled, expected, rtol=1e-6)
    np.testing.assert_allclose(by_statistics, expected, rtol=1e-6)


def test_standardised_contexts_of_many_lengths_do_not_see_their_padding():
    rng = np.random.default_rng(0)
    xs = [3 + 10 * rng.normal(size=(n, 3)) for n in (5, 9, 17, 30)]
    ys = [x.sum(axis=1) + rng.normal(size=len(x)) for x in xs]
    together = solve(xs, ys, standardise=True, fit_intercept=True)
    alone = [solve(x[None], y[None], standardise=True, fit_intercept=True)[0] for x, y in zip(xs, ys, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_input_has_weight_zero(dtype):
    x, y, _ = contexts(5, 12, 3, dtype)
    x = x.copy()
    x[..., 1] = 0.1
    found = solve(x, y, standardise=True, fit_intercept=True)
    assert (found[:, 1] == 0).all()
    assert np.isfinite(found).all()


def test_statistics_cannot_be_centred():
    x, y, _ = contexts(2)
    with pytest.raises(ValueError, match="`fit_intercept` needs the examples"):
        solve(GramStatistics.from_data(x, y), fit_intercept=True)
