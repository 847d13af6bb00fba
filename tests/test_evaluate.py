import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import random_rotation
from lintra.baselines import AdaptiveRidge, Bayes, ConstantRidge, LeastSquares, baseline, oracle_weights
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate, evaluate_layers, repeat_protocol
from lintra.evaluation.blocks import block_size
from lintra.evaluation.estimate import Estimate, Moments, Tail
from lintra.evaluation.noise_profile import profile
from lintra.models import Diagonal, Full
from lintra.predictor import AbstractContextwise
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_data, sample_statistics

BLOCK = block_size(4)
PROBLEM = NoisyRegression(dim=4, context=9, noise="uniform(0,3)")
TWO = {"ols": LeastSquares(), "ada": AdaptiveRidge()}
ROTATION = random_rotation(np.random.default_rng(3), 4)
ANISOTROPIC = NoisyRegression(
    dim=4, context=9, noise="uniform(0,3)", covariance=ROTATION @ np.diag([0.1, 0.5, 1, 3]) @ ROTATION.T
)


@pytest.mark.parametrize("problem", [PROBLEM, ANISOTROPIC, NoisyRegression(dim=4, context=3)], ids=str)
def test_the_exact_query_average_is_the_papers_monte_carlo(problem, getkey):
    """Two ways to the same number: their paired difference is within four of its standard errors."""
    predictors = {"ols": LeastSquares(), "const": ConstantRidge(jnp.asarray(2.0))}
    key = getkey()
    exact = evaluate(predictors, problem, num_sequences=200_000, key=key)
    sampled = evaluate(predictors, problem, num_sequences=200_000, sampled_query=True, key=key)
    for name in predictors:
        gap = Estimate.of(exact.losses[name] - sampled.losses[name])
        assert abs(gap.mean) < 4 * gap.standard_error
        assert exact.adjusted(name).standard_error < sampled.adjusted(name).standard_error
        loss = exact.unadjusted[name].mean - exact.unadjusted["oracle"].mean
        assert abs(loss - exact.adjusted(name).mean) < 5 * exact.unadjusted[name].standard_error


@pytest.mark.parametrize("problem", [PROBLEM, ANISOTROPIC], ids=["isotropic", "anisotropic"])
def test_the_exact_average_for_one_context_is_that_over_many_queries(problem, getkey):
    difference = jax.random.normal(getkey(), (4,))
    queries = sample_data(NoisyRegression(4, 100_000, covariance=problem.covariance), getkey())[0]
    losses = Estimate.of(np.asarray(0.5 * (queries @ difference) ** 2))
    assert abs(losses.mean - half_square(difference, problem.covariance)) < 4 * losses.standard_error


def test_more_sequences_begin_with_the_same_ones_and_differences_are_paired(getkey):
    key = getkey()
    few = evaluate(TWO, PROBLEM, num_sequences=100, key=key)
    many = evaluate({"ada": AdaptiveRidge()}, PROBLEM, num_sequences=BLOCK + 100, key=key)
    assert np.array_equal(few.losses["ada"], many.losses["ada"][:100])
    assert len(many.losses["ada"]) == BLOCK + 100
    gap = few.difference("ada", "ols")
    assert gap == Estimate.of(few.losses["ada"] - few.losses["ols"])
    assert gap.mean == pytest.approx(few.adjusted("ada").mean - few.adjusted("ols").mean)


def test_losses_are_those_of_the_sequences_themselves(getkey):
    key = getkey()
    comparison = evaluate(TWO, PROBLEM, num_sequences=50, key=key)
    block_key = jax.random.split(jax.random.fold_in(key, 0))[0]
    stats, truth = sample_statistics(PROBLEM, block_key, (BLOCK,))
    oracle = oracle_weights(stats, truth.noise_std)
    losses = half_square(LeastSquares().weights(stats) - oracle)
    assert np.allclose(comparison.losses["ols"], losses[:50], rtol=1e-9)
    worse = np.mean(losses[:50] > half_square(oracle)[:50])
    assert comparison.worse_than_zero["ols"] == pytest.approx(worse)
    assert comparison.losses["ols"].dtype == np.float64


def test_layers_come_in_order_and_the_last_is_the_model(getkey):
    model, key = Diagonal.random(12, dim=4, context=9, scale=0.1, key=getkey()), getkey()
    layers = evaluate_layers(model, PROBLEM, num_sequences=500, key=key)
    assert list(layers.losses) == [str(layer) for layer in range(1, 13)]
    whole = evaluate({"model": model}, PROBLEM, num_sequences=500, key=key)
    assert np.allclose(layers.losses["12"], whole.losses["model"], rtol=1e-9)


def test_names_keep_the_order_they_were_given_in(getkey):
    predictors = {"z": LeastSquares(), "a": AdaptiveRidge(), "m": LeastSquares()}
    assert list(evaluate(predictors, PROBLEM, num_sequences=10, key=getkey()).losses) == ["z", "a", "m"]


@pytest.mark.parametrize("scale", [3.0, 30.0])
def test_losses_too_large_to_square_are_still_reported(scale, getkey):
    model = Diagonal.random(4, dim=4, context=9, scale=scale, key=getkey())
    comparison = evaluate({"model": model}, PROBLEM, num_sequences=100, key=getkey())
    assert comparison.adjusted("model").mean > 1e100
    assert comparison.unadjusted["model"].mean > 1e100


def test_what_cannot_be_measured_is_refused(getkey):
    with pytest.raises(ValueError, match="`predictors` must be a dictionary"):
        evaluate(LeastSquares(), PROBLEM, key=getkey())  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="must not use the name 'oracle'"):
        evaluate({"oracle": LeastSquares()}, PROBLEM, key=getkey())
    with pytest.raises(ValueError, match="must come in layers, got LeastSquares"):
        evaluate_layers(LeastSquares(), PROBLEM, key=getkey())  # pyright: ignore[reportArgumentType]


def test_a_profile_measures_at_each_noise_level(getkey):
    levels, key = [0.0, 1.0, 2.0], getkey()
    comparisons = profile(TWO, PROBLEM, levels, num_sequences=2000, key=key)
    assert len(comparisons) == 3
    for std, comparison in zip(levels, comparisons, strict=True):
        fixed = NoisyRegression(dim=4, context=9, noise=f"fixed({std})")
        alone = evaluate(TWO, fixed, num_sequences=2000, key=key)
        assert np.array_equal(comparison.losses["ols"], alone.losses["ols"])
    assert (comparisons[0].losses["ols"] < 1e-20).all()
    assert comparisons[2].adjusted("ols").mean > comparisons[1].adjusted("ols").mean


def test_the_protocol_repeated_scatters_as_its_standard_error_says(getkey):
    repeated = repeat_protocol(TWO, PROBLEM, num_repetitions=30, num_sequences=2000, key=getkey())["ada"]
    single = evaluate(TWO, PROBLEM, num_sequences=100_000, sampled_query=True, key=getkey()).adjusted("ada")
    error = single.standard_error * (100_000 / 2000) ** 0.5
    assert 0.6 < repeated.means.std() / error < 1.5
    low, high = repeated.interval
    assert low < repeated.median < high
    assert abs(repeated.median - single.mean) < 4 * 1.25 * error / 30**0.5


def test_tails_show_what_a_mean_hides():
    losses = np.concatenate([np.full(9_990, 1.0), np.full(10, 1e6)])
    tail = Tail.of(losses, 0.001)
    assert tail.median == 1.0
    assert tail.trimmed_mean == 1.0
    assert tail.worst == 1e6
    assert tail.top_ten_share == pytest.approx(1e7 / (1e7 + 9_990))


class Exploding(AbstractContextwise):
    """Weights that overflow on contexts with large labels."""

    def solve(self, stats):
        return jnp.where(stats.yy > 100.0, jnp.nan, 0.0) * stats.xy


def test_a_sequence_that_overflows_counts_as_infinite_not_as_missing(getkey):
    comparison = evaluate({"bad": Exploding(), "ols": LeastSquares()}, PROBLEM, num_sequences=1000, key=getkey())
    assert comparison.adjusted("bad").mean == np.inf
    tail = comparison.tail("bad")
    assert tail.worst == np.inf
    assert np.isfinite(tail.median)
    assert 0 < comparison.worse_than_zero["bad"] < 1
    assert np.isfinite(comparison.adjusted("ols").mean)


def test_running_moments_are_those_of_all_values():
    values = np.random.default_rng(0).normal(3, 2, size=1000)
    running = Moments().add(values[:300]).add(values[300:]).estimate()
    whole = Estimate.of(values)
    assert running.mean == pytest.approx(whole.mean)
    assert running.standard_error == pytest.approx(whole.standard_error)


@pytest.mark.parametrize("name", ["num_sequences", "num_repetitions"])
def test_no_sequences_and_no_repetitions_are_refused(name, getkey):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 1, got 0"):
        repeat_protocol(TWO, PROBLEM, **{"num_sequences": 10, "num_repetitions": 1} | {name: 0}, key=getkey())


def test_progress_is_shown_block_by_block(getkey):
    seen = []

    def track(items, total):
        for item in items:
            seen.append((item, total))
            yield item

    evaluate(TWO, PROBLEM, num_sequences=2 * BLOCK + 1, key=getkey(), track=track)
    assert seen == [(0, 3), (1, 3), (2, 3)]


def _check_column(noise, num_sequences, key):
    problem = NoisyRegression(noise=noise)
    names = ("const-ridge", "ada-ridge", "tuned-ridge")
    keys = jax.random.split(key, 3)
    predictors = {name: baseline(name, problem, key=keys[0]) for name in names}
    measured = evaluate(
        predictors | {"bayes": Bayes(problem.noise)}, problem, num_sequences=num_sequences, key=keys[1]
    )
    protocol = evaluate(predictors, problem, num_sequences=100_000, sampled_query=True, key=keys[2])
    for name in names:
        printed = paper.table1()[name, None, noise]
        error = np.hypot(protocol.adjusted(name).standard_error, measured.adjusted(name).standard_error)
        assert abs(measured.adjusted(name).mean - printed.value) < 3 * error + printed.rounding, name
        gap = measured.difference("bayes", name)
        assert gap.mean < 0 or noise == "uniform(0,0)", name
    return measured.adjusted("bayes")


@pytest.mark.parametrize("noise", ["uniform(0,0)", "uniform(0,1)", "uniform(0,5)", "choice(1,3)"])
def test_baselines_of_table_1(noise, getkey):
    _check_column(noise, 50_000, getkey())


@pytest.mark.slow
@pytest.mark.parametrize("noise", paper.NOISES)
def test_all_baselines_of_table_1_on_a_million_sequences(noise, getkey):
    floor = _check_column(noise, 1_000_000, getkey())
    known = {"uniform(0,5)": 0.0390, "choice(1,3)": 0.0057}
    if noise in known:
        assert floor.mean == pytest.approx(known[noise], abs=4 * floor.standard_error)


@pytest.mark.slow
def test_ten_million_sequences_fit_in_two_gibibytes():
    code = """
import jax, resource
from lintra.baselines import ConstantRidge
from lintra.evaluation import evaluate
from lintra.problem import NoisyRegression
problem = NoisyRegression()
losses = evaluate({"c": ConstantRidge.tuned(problem)}, problem, num_sequences=10_000_000, key=jax.random.key(0))
losses.tail("c")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 2 * 2**20  # kibibytes


def test_a_full_model_is_measured_as_any_other(getkey):
    model = Full.random(2, dim=4, context=9, scale=0.1, key=getkey())
    assert np.isfinite(evaluate({"full": model}, PROBLEM, num_sequences=100, key=getkey()).adjusted("full").mean)


def test_the_protocol_can_be_measured_beside_the_exact_loss(getkey):
    key = getkey()
    both = evaluate(TWO, PROBLEM, num_sequences=10_000, protocol=True, key=key)
    sampled = evaluate(TWO, PROBLEM, num_sequences=10_000, sampled_query=True, key=key)
    assert np.allclose(both.protocol["ada"], sampled.losses["ada"], rtol=1e-9, atol=1e-12)
    repeated = both.repeated("ada", 4000)
    assert np.allclose(
        repeated.means, [sampled.losses["ada"][:4000].mean(), sampled.losses["ada"][4000:8000].mean()]
    )
    with pytest.raises(ValueError, match="must be at most 10,000"):
        both.repeated("ada", 10_001)
