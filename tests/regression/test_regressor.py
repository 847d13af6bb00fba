"""The scikit-learn face: its contract, and that it is the same algorithm."""

import pickle
import warnings
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lintra import GramStatistics, zoo
from lintra.models import FAMILIES
from lintra.regression import specialists
from lintra.regression.regressor import LinearTransformerRegressor
from lintra.regression.soundness import UnsoundWarning
from regression_helpers import data

RNG = np.random.default_rng(0)


@pytest.mark.filterwarnings("ignore::lintra.regression.soundness.UnsoundWarning")
@parametrize_with_checks(
    [LinearTransformerRegressor(), LinearTransformerRegressor(whiten=True, fit_intercept=False)]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_on_standard_data_it_is_the_model_alone():
    """Inputs that are standardised already, labels in the unit of training: fit is the forward pass."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 10))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y = x @ rng.normal(size=10) + rng.normal(size=20)
    model = zoo.load("diag-7-uniform(0,5)")
    label_scale = np.sqrt(np.mean((y - y.mean()) ** 2) / (10 + 25 / 3))
    stats = GramStatistics.from_data(x, (y - y.mean()) / label_scale)
    largest = np.linalg.eigvalsh(np.asarray(stats.xx) / 20)[-1]
    shrink = min(1.0, ((1 + 0.5**0.5) ** 2 / largest) ** 0.5)
    stats = GramStatistics.from_data(shrink * x, (y - y.mean()) / label_scale)
    fitted = LinearTransformerRegressor("diag-7-uniform(0,5)").fit(x, y)
    np.testing.assert_allclose(fitted.coef_, np.asarray(model.weights(stats)) * label_scale * shrink, rtol=1e-9)
    np.testing.assert_allclose(fitted.coef_path_[-1], fitted.coef_, rtol=1e-9)
    assert fitted.coef_path_.shape == (7, 10)


@pytest.mark.parametrize("whiten", [False, True])
def test_units_and_offsets_of_the_data_do_not_matter(whiten):
    x, y, _ = data()
    plain = LinearTransformerRegressor(whiten=whiten).fit(x, y)
    scale, shift = np.array([1e-3, 1e5, 1.0, 1e100]), np.array([5.0, -1e5, 0.0, 1e100])
    moved = LinearTransformerRegressor(whiten=whiten).fit(x * scale + shift, 1e-50 * y + 3e-50)
    np.testing.assert_allclose(moved.coef_ * scale * 1e50, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose((moved.predict(x * scale + shift) - 3e-50) * 1e50, plain.predict(x), rtol=1e-6)
    assert moved.noise_ * 1e50 == pytest.approx(plain.noise_, rel=1e-6)


def test_weights_of_examples_count_how_often_they_are_there():
    x, y, _ = data(n=24)
    weight = RNG.integers(0, 4, size=24)
    weighted = LinearTransformerRegressor().fit(x, y, sample_weight=weight)
    repeated = LinearTransformerRegressor().fit(np.repeat(x, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_, rel=1e-9)
    with pytest.raises(ValueError, match="at least one non-zero"):
        LinearTransformerRegressor().fit(x, y, sample_weight=np.zeros(24))


def test_targets_are_fitted_one_by_one():
    x, y, _ = data()
    both = LinearTransformerRegressor().fit(x, np.column_stack([y, -3 * y + 1]))
    alone = LinearTransformerRegressor().fit(x, y)
    np.testing.assert_allclose(both.coef_, [alone.coef_, -3 * alone.coef_], rtol=1e-9)
    assert both.coef_path_.shape == (specialists.NUM_LAYERS, 2, 4)
    assert both.predict(x).shape == (30, 2)


def test_a_row_is_predicted_the_same_alone_and_among_others():
    x, y, _ = data()
    fitted = LinearTransformerRegressor().fit(x, y)
    assert all(fitted.predict(x[i : i + 1])[0] == fitted.predict(x)[i] for i in range(len(x)))


def test_tables_pipelines_searches_and_copies():
    x, y, _ = data(n=60, d=2)
    for table in (pd.DataFrame(x, columns=["a", "b"]), pl.DataFrame(x, schema=["a", "b"])):
        fitted = LinearTransformerRegressor().fit(table, y)
        assert list(getattr(fitted, "feature_names_in_", [])) == ["a", "b"]
        np.testing.assert_allclose(fitted.predict(table), LinearTransformerRegressor().fit(x, y).predict(x))
    pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), LinearTransformerRegressor())
    search = GridSearchCV(pipeline, {"lineartransformerregressor__whiten": [False, True]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.5
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(x), search.predict(x))
    copy: Any = clone(pipeline)
    named = copy.set_output(transform="pandas").fit(x, y)
    assert list(named[-1].feature_names_in_) == ["x0", "x1", "x0^2", "x0 x1", "x1^2"]


def test_noise_follows_the_noise_of_the_data():
    found = [LinearTransformerRegressor().fit(*data(n=60, d=5, noise=s, seed=3)[:2]).noise_ for s in (0.3, 1, 3)]
    assert found == sorted(found)
    assert 0.3 < found[1] / 1.0 < 3


@pytest.mark.filterwarnings("ignore::lintra.regression.soundness.UnsoundWarning")
def test_noise_is_the_same_whether_inputs_are_correlated_or_not():
    rng = np.random.default_rng(0)
    for true in (1.0, 3.0):
        found = []
        for _ in range(40):
            x = rng.normal(size=(60, 1)) * 0.9**0.5 + rng.normal(size=(60, 8)) * 0.1**0.5
            y = x @ rng.normal(size=8) + true * rng.normal(size=60)
            found.append(LinearTransformerRegressor().fit(x, y).noise_)
        assert 0.7 < np.median(found) / true < 1.4


@pytest.mark.parametrize("weight", [0.0, 1e-310, 1e18, 1e306])
def test_weights_without_a_sensible_sum_are_rejected(weight):
    x, y, _ = data()
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        LinearTransformerRegressor().fit(x, y, sample_weight=np.full(len(y), weight))


def test_small_noisy_tasks_are_solved_better_than_by_bayesian_ridge():
    ours, theirs = [], []
    for seed in range(200):
        x, y, w = data(n=16, d=8, noise=2.0, seed=seed)
        ours.append(np.sum((LinearTransformerRegressor(fit_intercept=False).fit(x, y).coef_ - w) ** 2))
        theirs.append(np.sum((BayesianRidge(fit_intercept=False).fit(x, y).coef_ - w) ** 2))
    gain = np.asarray(theirs) - ours
    assert gain.mean() > 3 * gain.std() / len(gain) ** 0.5


def test_a_model_that_explodes_is_answered_by_the_bayes_predictor():
    x, y, _ = data(n=20, d=3)
    wild = FAMILIES["diag"].random(6, dim=3, num_examples=20, scale=5.0, key=jax.random.key(0))
    with pytest.warns(UnsoundWarning, match="On 1 of 1 targets"):
        fitted = LinearTransformerRegressor(wild).fit(x, y)
    assert fitted.fallback_
    assert fitted.score(x, y) > 0.9
    np.testing.assert_allclose(fitted.coef_path_, np.broadcast_to(fitted.coef_, (6, 3)))


def ridge():
    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 6, 40)))


def test_a_curve_of_correlated_features_is_fitted_as_well_as_by_ridge():
    rng, t = np.random.default_rng(0), np.arange(40.0)
    X = np.column_stack([t, t**2, np.sin(t / 3)])
    truth = X @ [1.0, 0.02, 3.0] + 5
    ours, theirs, noise = [], [], []
    for _ in range(20):
        y = truth + 0.3 * rng.normal(size=40)
        with pytest.warns(UnsoundWarning, match=r"inputs are strongly correlated \(1\); remedy: drop inputs"):
            fitted = LinearTransformerRegressor().fit(X, y)
        ours.append(np.mean((fitted.predict(X) - truth) ** 2))
        theirs.append(np.mean((ridge().fit(X, y).predict(X) - truth) ** 2))
        noise.append(fitted.noise_)
        assert fitted.score(X, y) > 0.99
        assert fitted.fallback_
    assert np.mean(ours) < 1.3 * np.mean(theirs)
    assert np.median(noise) < 3 * 0.3


@pytest.mark.parametrize("model", ["auto", "diag-7-uniform(0,5)", "full-7-uniform(0,5)"])
def test_strongly_correlated_inputs_are_fitted_as_well_as_by_ridge(model):
    rng, ours, theirs = np.random.default_rng(0), [], []
    for _ in range(30):
        x, queries = (rng.normal(size=(m, 1)) * 0.9**0.5 + rng.normal(size=(m, 10)) * 0.1**0.5 for m in (40, 200))
        w = rng.normal(size=10)
        y, truth = x @ w + 0.1 * rng.normal(size=40), queries @ w
        with pytest.warns(UnsoundWarning, match="inputs are strongly correlated"):
            fitted = LinearTransformerRegressor(model).fit(x, y)
        ours.append(np.mean((fitted.predict(queries) - truth) ** 2) / truth.var())
        theirs.append(np.mean((ridge().fit(x, y).predict(queries) - truth) ** 2) / truth.var())
    assert np.mean(ours) < 1.3 * np.mean(theirs)


def test_independent_inputs_are_not_warned_about():
    rng, warned = np.random.default_rng(0), 0
    for _ in range(300):
        x, w = rng.normal(size=(24, 6)), rng.normal(size=6)
        y = x @ w + rng.uniform(0, 4) * rng.normal(size=24)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            LinearTransformerRegressor().fit(x, y)
        warned += bool(found)
    assert warned <= 3


@pytest.mark.parametrize("name", ["X", "y"])
def test_values_whose_sums_overflow_are_rejected(name):
    x, y, _ = data()
    x, y = (1e308 * np.sign(x), y) if name == "X" else (x, 1e308 * np.sign(y))
    with pytest.raises(ValueError, match=rf"`{name}` must have values of at most 1e\+304 in size, got 1e\+308"):
        LinearTransformerRegressor().fit(x, y)


def test_far_from_what_was_trained_it_says_so():
    rng = np.random.default_rng(0)
    with pytest.warns(UnsoundWarning, match=r"80 inputs are 1.6 times the largest number trained for, 50"):
        LinearTransformerRegressor().fit(rng.normal(size=(90, 80)), rng.normal(size=90))
    with pytest.warns(UnsoundWarning, match=r"900 examples of 4 inputs are 7.0 times the most trained") as found:
        LinearTransformerRegressor().fit(rng.normal(size=(900, 4)), rng.normal(size=900))
    assert [warning.filename for warning in found] == [__file__]
    with pytest.raises(ValueError, match="is for 10 inputs, and there are 3"):
        LinearTransformerRegressor("full-7-uniform(0,5)").fit(rng.normal(size=(20, 3)), rng.normal(size=20))
    with pytest.raises(ValueError, match="`specialise` needs"):
        LinearTransformerRegressor("full-7-uniform(0,5)", specialise=True).fit(*data()[:2])


KINDS = [
    lambda x, y: (x, y),
    lambda x, y: (x * 0, y),
    lambda x, y: (np.repeat(x[:, :1], x.shape[1], axis=1), y),
    lambda x, y: (x * 1e150, y * 1e-150),
    lambda x, y: (x * 1e-200, y),
    lambda x, y: (np.repeat(x[:1], len(x), axis=0), y),
    lambda x, y: (x, y * 0),
    lambda x, y: (x, y * 0 + 1e300),
    lambda x, y: (x**9, y**9),
    lambda x, y: (np.exp(30 * x), y),
]


def fit_all(repetitions):
    """Whether coefficients and predictions of all kinds of bad contexts are finite."""
    rng = np.random.default_rng(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundWarning)
        for _ in range(repetitions):
            for kind in KINDS:
                for n, d in ((1, 3), (2, 1), (5, 8), (20, 5)):
                    x, y = kind(rng.normal(size=(n, d)), rng.normal(size=n))
                    fitted = LinearTransformerRegressor(whiten=bool(rng.integers(2))).fit(x, y)
                    yield np.isfinite(fitted.coef_).all() and np.isfinite(fitted.predict(x)).all()


def test_bad_contexts_are_answered_without_what_is_not_finite():
    assert all(fit_all(1))


@pytest.mark.slow
def test_ten_thousand_bad_contexts_are_answered_without_what_is_not_finite():
    answers = list(fit_all(250))
    assert len(answers) == 10_000
    assert all(answers)
