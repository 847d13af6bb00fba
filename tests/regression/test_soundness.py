import re
import warnings

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lintra import GramStatistics, solve
from lintra.baselines import Bayes
from lintra.regression.soundness import UnsoundWarning, is_typical
from regression_helpers import NAME, contexts

PENALTIES = np.logspace(-6, 6, 40)


def test_warnings_point_to_who_called():
    with pytest.warns(UnsoundWarning) as found:
        solve(np.ones((1, 2, 8)), np.ones((1, 2)))
    assert {warning.filename for warning in found} == {__file__}


def correlated(rng, shape, correlation):
    common = rng.normal(size=(*shape[:-1], 1))
    return correlation**0.5 * common + (1 - correlation) ** 0.5 * rng.normal(size=shape)


def uniform_inputs(rng, shape):
    return rng.uniform(size=shape)


def half_correlated_inputs(rng, shape):
    return correlated(rng, shape, 0.5)


def inputs_on_other_scales(rng, shape):
    scale = np.asarray([1e-2, 0.3, 5.0, 40.0, 1e3, 2.0])
    return scale * (rng.normal(size=shape) + np.asarray([0.0, 1.0, -2.0, 0.5, 3.0, 0.0]))


def prediction_errors(draw, noise, *, intercept=0.0, num_contexts=200, **settings):
    """Squared errors of `solve` and of RidgeCV at fresh inputs, on the same draws, and the warnings of `solve`."""
    rng, (n, d) = np.random.default_rng(0), (30, 6)
    x, queries = (draw(rng, (num_contexts, size, d)) for size in (n, 50))
    w = rng.normal(size=(num_contexts, d)) / x.std(axis=(0, 1))
    f, truth = (np.einsum("bnd,bd->bn", inputs, w) + intercept for inputs in (x, queries))
    y = f + noise * rng.normal(size=f.shape)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        weights = solve(x, y, **settings)
    ours, ridge = np.einsum("bnd,bd->bn", queries, weights[:, :d]), RidgeCV(PENALTIES, fit_intercept=False)
    if settings.get("fit_intercept"):
        ours, ridge = ours + weights[:, d:], make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
    theirs = np.asarray([ridge.fit(*context).predict(q) for *context, q in zip(x, y, queries, strict=True)])
    errors = [float(np.mean((prediction - truth) ** 2)) for prediction in (ours, theirs)]
    return *errors, [str(warning.message) for warning in found]


def test_inputs_on_other_scales_with_an_intercept_are_solved_as_well_as_by_ridge():
    settings = {"standardise": True, "fit_intercept": True}
    ours, theirs, _ = prediction_errors(inputs_on_other_scales, 1.0, intercept=3.0, **settings)
    assert ours < 1.3 * theirs


@pytest.mark.parametrize(
    ("draw", "noise", "cause", "remedy"),
    [
        (uniform_inputs, 0.05, "inputs are not standardised", "pass `standardise=True`"),
        (half_correlated_inputs, 0.5, "inputs are strongly correlated", "drop inputs that repeat one another"),
    ],
)
def test_inputs_unlike_those_of_training_are_answered_by_the_bayes_predictor(draw, noise, cause, remedy):
    ours, theirs, (sentence,) = prediction_errors(draw, noise)
    assert ours < 1.3 * theirs
    assert cause in sentence
    assert remedy in sentence
    assert "the Bayes predictor answered" in sentence


@pytest.mark.parametrize("correlation", [0.1, 0.2, 0.3, 0.7, 0.9, 0.99])
def test_no_correlation_of_inputs_makes_answers_much_worse_than_ridge(correlation):
    ours, theirs, _ = prediction_errors(lambda rng, shape: correlated(rng, shape, correlation), 0.3)
    assert ours < 1.3 * theirs


def test_labels_larger_than_in_training_are_reported():
    x, y, _ = contexts(30)
    with pytest.warns(UnsoundWarning, match=r"labels are larger than in training.*divide them by their standard"):
        found = solve(x, 1000 * y, model=NAME)
    np.testing.assert_allclose(found, Bayes("uniform(0,5)").weights(GramStatistics.from_data(x, 1000 * y)))


@pytest.mark.parametrize(("n", "d"), [(4, 1), (20, 10), (5, 10)])
@pytest.mark.parametrize("standardise", [False, True])
def test_contexts_as_in_training_are_seldom_doubted(n, d, standardise):
    rng, count = np.random.default_rng(0), 4000
    x, w = rng.normal(size=(count, n, d)), rng.normal(size=(count, d))
    noise = rng.uniform(0, 2 * d**0.5, size=(count, 1)) * rng.normal(size=(count, n))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UnsoundWarning)
        solve(x, np.einsum("bnd,bd->bn", x, w) + noise, standardise=standardise, fit_intercept=standardise)
    doubted = int(re.findall(r"On (\d+) of", str(found[0].message))[0]) if found else 0
    assert doubted <= 0.01 * count


def test_typical_contexts_are_those_of_independent_inputs_of_variance_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 20, 10))
    for inputs, share in ((x, (0.9, 0.999)), (0.5 * x, (0, 0.01)), (2 * x, (0, 0)), (x + 1, (0, 0))):
        typical = np.asarray(is_typical(GramStatistics.from_data(inputs, x[..., 0])))
        assert share[0] <= typical.mean() <= share[1]
