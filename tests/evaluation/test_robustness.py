"""Contexts that are unlike those of training, and what models do on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as distributions

from lintra import NoisyRegression, sample_data, zoo
from lintra.evaluation.robustness import (
    CONTEXT_KINDS,
    Robustness,
    contexts_losses,
    is_exploded,
    sample_contexts,
)

PROBLEM = NoisyRegression(4, 12, "fixed(0.5)")
NUM = 4000


def inputs_of(kind):
    """Inputs of a kind, made from inputs of the problem."""
    x, _, _ = sample_data(PROBLEM, (NUM,), key=3)
    return np.asarray(x), np.asarray(CONTEXT_KINDS[kind].change_inputs(x, jax.random.key(8)))


@pytest.mark.parametrize(("kind", "factor"), [("leverage-3", 3.0), ("leverage-10", 10.0)])
def test_leverage_lengthens_the_first_example_alone(kind, factor):
    before, after = inputs_of(kind)
    np.testing.assert_allclose(after[:, 0], factor * before[:, 0])
    assert (after[:, 1:] == before[:, 1:]).all()


def test_correlated_inputs_have_variance_one_and_correlation_0_9():
    _, x = inputs_of("correlation-0.9")
    count = NUM * PROBLEM.num_examples
    covariance = np.einsum("bni,bnj->ij", x, x) / count
    # An entry of the covariance has a standard deviation of at most √(2/count).
    assert np.abs(covariance - (0.9 + 0.1 * np.eye(4))).max() < 5 * (2 / count) ** 0.5


def test_t3_inputs_have_students_distribution():
    _, x = inputs_of("t3")
    assert distributions.kstest(x.ravel()[:20_000], distributions.t(3).cdf).pvalue > 1e-3
    assert distributions.kstest(x.ravel()[:20_000], distributions.norm.cdf).pvalue < 1e-6


@pytest.mark.parametrize("kind", CONTEXT_KINDS)
def test_labels_are_those_of_the_changed_inputs_and_the_first_may_be_shifted(kind):
    """λ − 2 α'w + w'Σw is the sum of squares of noise and shift, whatever the inputs are."""
    statistics, truth = sample_contexts(PROBLEM, kind, NUM, key=5)
    w = truth.weights
    rest = statistics.yy - 2 * jnp.sum(statistics.xy * w, -1) + jnp.einsum("bi,bij,bj->b", w, statistics.xx, w)
    shift = CONTEXT_KINDS[kind].label_shift
    expected, variance = 12 * 0.25 + shift**2, 2 * 12 * 0.25**2 + 4 * shift**2 * 0.25
    assert abs(float(rest.mean()) - expected) < 5 * (variance / NUM) ** 0.5
    assert shift == (30.0 if kind == "label-30" else 0.0)


def test_losses_above_5_for_each_input_and_losses_that_are_not_finite_are_exploded():
    losses = np.asarray([0.0, 50.0, 50.1, np.inf, np.nan])
    assert np.asarray(is_exploded(losses, 10)).tolist() == [False, False, True, True, True]


def test_rows_are_summaries_of_the_losses_of_both_models_on_the_same_contexts():
    name = "gd++-4-uniform(0,1)"
    need = Robustness(name, num_contexts=500)
    rows = need.measure(zoo.published(), key=2)
    assert [(row["contexts"], row["damped"]) for row in rows] == [
        (kind, is_damped) for kind in CONTEXT_KINDS for is_damped in (False, True)
    ]
    by_kind = {(row["contexts"], row["damped"]): row for row in rows}
    printed = by_kind["own", False]
    assert printed["median"] == by_kind["own", True]["median"]
    assert printed["oracle_median"] < printed["median"]
    for kind in ("leverage-10", "inputs-3"):
        assert by_kind[kind, False]["exploded"] > 0.9
        assert by_kind[kind, True]["exploded"] == 0


def test_summaries_have_errors(monkeypatch):
    from lintra.evaluation import robustness

    monkeypatch.setattr(robustness, "block_size", lambda dim: 64)
    model = zoo.load("gd++-4-uniform(0,1)")
    problem = NoisyRegression(noise="uniform(0,1)")
    medians, errors = [], []
    for key in range(40):
        losses = contexts_losses({"model": model}, problem, "own", 150, key=key)
        assert {name: len(values) for name, values in losses.items()} == {"model": 150, "oracle": 150}
        summary = robustness._summary(losses["model"], 10)
        medians.append(summary["median"])
        errors.append(summary["median_error"])
        assert summary["worst"] == losses["model"].max()
    # The spread of 40 medians has a relative error of 11 %.
    assert np.std(medians) == pytest.approx(np.mean(errors), rel=0.5)
