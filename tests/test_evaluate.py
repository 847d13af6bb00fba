import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import save, zoo
from lintra.baselines import AdaptiveRidge, Bayes, ConstantRidge, LeastSquares, baseline, oracle_weights
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.blocks import block_size
from lintra.evaluation.estimate import Estimate, Moments, ProtocolQuantiles, Tail
from lintra.evaluation.noise_profile import profile
from lintra.models import Diagonal, Full
from lintra.predictor import AbstractContextwise
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Progress
from lintra.statistics.sampling import sample_data, sample_statistics
from members import random_rotation

BLOCK = block_size(4)
PROBLEM = NoisyRegression(dim=4, num_examples=9, noise="uniform(0,3)")
TWO = {"ols": LeastSquares(), "ada": AdaptiveRidge()}
ROTATION = random_rotation(np.random.default_rng(3), 4)
ANISOTROPIC = NoisyRegression(
    dim=4, num_examples=9, noise="uniform(0,3)", covariance=ROTATION @ np.diag([0.1, 0.5, 1, 3]) @ ROTATION.T
)


@pytest.mark.parametrize("problem", [PROBLEM, ANISOTROPIC, NoisyRegression(dim=4, num_examples=3)], ids=str)
def test_the_exact_query_average_is_the_papers_monte_carlo(problem, getkey):
    """Two ways to the same number: their paired difference is within four of its standard errors."""
    predictors = {"ols": LeastSquares(), "const": ConstantRidge(jnp.asarray(2.0))}
    exact = evaluate(predictors, problem, num_sequences=200_000, protocol=True, key=getkey())
    for name in predictors:
        sampled = Estimate.from_values(exact.protocol_losses[name, None])
        gap = Estimate.from_values(exact.losses(name) - exact.protocol_losses[name, None])
        assert abs(gap.mean) < 4 * gap.standard_error
        assert exact.adjusted(name).standard_error < sampled.standard_error
        loss = exact.unadjusted(name).mean - exact.unadjusted("oracle").mean
        assert abs(loss - exact.adjusted(name).mean) < 5 * exact.unadjusted(name).standard_error


@pytest.mark.parametrize("problem", [PROBLEM, ANISOTROPIC], ids=["isotropic", "anisotropic"])
def test_the_exact_average_for_one_context_is_that_over_many_queries(problem, getkey):
    difference = jax.random.normal(getkey(), (4,))
    queries = sample_data(NoisyRegression(4, 100_000, covariance=problem.covariance), key=getkey())[0]
    losses = Estimate.from_values(np.asarray(0.5 * (queries @ difference) ** 2))
    assert abs(losses.mean - half_square(difference, problem.covariance)) < 4 * losses.standard_error


def test_more_sequences_begin_with_the_same_ones_and_differences_are_paired(getkey):
    key = getkey()
    few = evaluate(TWO, PROBLEM, num_sequences=100, key=key)
    many = evaluate({"ada": AdaptiveRidge()}, PROBLEM, num_sequences=BLOCK + 100, key=key)
    assert np.array_equal(few.losses("ada"), many.losses("ada")[:100])
    assert len(many.losses("ada")) == BLOCK + 100
    gap = few.difference("ada", "ols")
    assert gap == Estimate.from_values(few.losses("ada") - few.losses("ols"))
    assert gap.mean == pytest.approx(few.adjusted("ada").mean - few.adjusted("ols").mean)


def test_losses_are_those_of_the_sequences_themselves(getkey):
    key = getkey()
    comparison = evaluate(TWO, PROBLEM, num_sequences=50, key=key)
    block_key = jax.random.split(jax.random.fold_in(key, 0))[0]
    stats, truth = sample_statistics(PROBLEM, (BLOCK,), key=block_key)
    oracle = oracle_weights(stats, truth.noise_std)
    losses = half_square(LeastSquares().weights(stats) - oracle)
    assert np.allclose(comparison.losses("ols"), losses[:50], rtol=1e-9)
    worse = np.mean(losses[:50] > half_square(oracle)[:50])
    assert comparison.worse_than_zero("ols") == pytest.approx(worse)
    assert comparison.losses("ols").dtype == np.float64


def test_layers_come_in_order_and_the_last_is_the_model(getkey):
    model, key = Diagonal.random(12, dim=4, num_examples=9, scale=0.1, key=getkey()), getkey()
    layers = evaluate(
        {"model": model, "ols": LeastSquares()}, PROBLEM, num_sequences=500, every_layer=True, key=key
    )
    assert layers.layers("model") == tuple(range(1, 13))
    assert layers.layers("ols") == ()
    whole = evaluate(model, PROBLEM, num_sequences=500, key=key)
    assert np.allclose(layers.losses("model", 12), whole.losses(), rtol=1e-9)
    assert np.array_equal(layers.losses("model"), layers.losses("model", 12))
    block_key = jax.random.split(jax.random.fold_in(key, 0))[0]
    stats, truth = sample_statistics(PROBLEM, (BLOCK,), key=block_key)
    third = half_square(model.layer_weights(stats)[:, 2] - oracle_weights(stats, truth.noise_std))
    assert np.allclose(layers.losses("model", 3), third[:500], rtol=1e-9)
    with pytest.raises(ValueError, match="`layer` of 'model' must be from 1 to 12, got 13"):
        layers.adjusted("model", 13)
    with pytest.raises(
        ValueError, match="`layer` of 'diag-12' must be None, unless `evaluate` has `every_layer=True`"
    ):
        whole.adjusted(layer=1)


def test_names_keep_the_order_they_were_given_in(getkey):
    predictors = {"z": LeastSquares(), "a": AdaptiveRidge(), "m": LeastSquares()}
    assert list(evaluate(predictors, PROBLEM, num_sequences=10, key=getkey()).names) == ["z", "a", "m"]


@pytest.mark.parametrize("scale", [3.0, 30.0])
def test_losses_too_large_to_square_are_still_reported(scale, getkey):
    model = Diagonal.random(4, dim=4, num_examples=9, scale=scale, key=getkey())
    comparison = evaluate({"model": model}, PROBLEM, num_sequences=100, key=getkey())
    assert comparison.adjusted("model").mean > 1e100
    assert comparison.unadjusted("model").mean > 1e100


def test_what_cannot_be_measured_is_refused(getkey):
    for wrong in (3, {"mine": 3}, [LeastSquares(), None], {3: LeastSquares()}):
        with pytest.raises(TypeError, match="`predictors` must be a predictor, a name such as 'bayes'"):
            evaluate(wrong, PROBLEM, key=getkey())  # pyright: ignore[reportArgumentType]
    for none in ({}, []):
        with pytest.raises(ValueError, match="`predictors` must have at least one"):
            evaluate(none, PROBLEM)
    with pytest.raises(ValueError, match="`predictors` has 'LeastSquares' twice"):
        evaluate([LeastSquares(), LeastSquares()], PROBLEM)
    with pytest.raises(ValueError, match="must not use the name 'oracle'"):
        evaluate({"oracle": LeastSquares()}, PROBLEM, key=getkey())
    with pytest.raises(ValueError, match="must come in layers for `every_layer=True`, got LeastSquares"):
        evaluate(LeastSquares(), PROBLEM, every_layer=True, key=getkey())


def test_a_profile_measures_at_each_noise_level(getkey):
    levels, key = [0.0, 1.0, 2.0], getkey()
    comparisons = profile(TWO, PROBLEM, levels, num_sequences=2000, key=key)
    assert len(comparisons) == 3
    for std, comparison in zip(levels, comparisons, strict=True):
        fixed = NoisyRegression(dim=4, num_examples=9, noise=f"fixed({std})")
        alone = evaluate(TWO, fixed, num_sequences=2000, key=key)
        assert np.array_equal(comparison.losses("ols"), alone.losses("ols"))
    assert (comparisons[0].losses("ols") < 1e-20).all()
    assert comparisons[2].adjusted("ols").mean > comparisons[1].adjusted("ols").mean


def test_the_protocol_repeated_scatters_as_its_standard_error_says(getkey):
    measured = evaluate(TWO, PROBLEM, num_sequences=160_000, protocol=True, key=getkey())
    means = measured.protocol_means("ada", num_sequences=2000)[:30]
    single = Estimate.from_values(measured.protocol_losses["ada", None][60_000:])
    error = single.standard_error * (100_000 / 2000) ** 0.5
    assert 0.6 < means.std() / error < 1.5
    repeated = ProtocolQuantiles.from_means(means)
    assert repeated.low < repeated.median < repeated.high
    assert abs(repeated.median - single.mean) < 4 * 1.25 * error / 30**0.5


def test_the_protocol_by_the_normal_law_covers_its_repetitions():
    """With few losses the range has the error of their mean as well, so nine in ten repetitions lie in it."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(400):
        quantiles = ProtocolQuantiles.from_losses(rng.normal(3, 2, size=500), num_sequences=250)
        inside.append(quantiles.low < rng.normal(3, 2, size=250).mean() < quantiles.high)
    assert abs(np.mean(inside) - 0.9) < 4 * (0.9 * 0.1 / 400) ** 0.5


def test_the_protocol_is_that_of_its_repetitions_where_there_are_five(getkey):
    problem = NoisyRegression(dim=1, num_examples=3, noise="fixed(1)")
    measured = evaluate(LeastSquares(), problem, num_sequences=500_000, protocol=True, key=getkey())
    assert len(measured.protocol_means()) == 5
    assert measured.protocol() == ProtocolQuantiles.from_means(measured.protocol_means())
    with pytest.raises(ValueError, match="call `evaluate` with `protocol=True`"):
        evaluate(LeastSquares(), problem, num_sequences=10).protocol()


def test_tails_show_what_a_mean_hides():
    losses = np.concatenate([np.full(9_990, 1.0), np.full(10, 1e6)])
    tail = Tail.from_values(losses, 0.001)
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
    assert 0 < comparison.worse_than_zero("bad") < 1
    assert np.isfinite(comparison.adjusted("ols").mean)


def test_running_moments_are_those_of_all_values():
    values = np.random.default_rng(0).normal(3, 2, size=1000)
    running = Moments().add(values[:300]).add(values[300:]).estimate()
    whole = Estimate.from_values(values)
    assert running.mean == pytest.approx(whole.mean)
    assert running.standard_error == pytest.approx(whole.standard_error)


def test_no_sequences_are_refused():
    with pytest.raises(ValueError, match="`num_sequences` must be a whole number of at least 1, got 0"):
        evaluate(TWO, PROBLEM, num_sequences=0)


class Recorded(Progress):
    """Stores what it is told."""

    def __init__(self):
        self.calls = []

    def start(self, text, total=None):
        self.calls.append((text, total))

    def update(self, done, **fields):
        self.calls.append(done)


def test_progress_is_shown_block_by_block(getkey):
    progress = Recorded()
    evaluate(TWO, PROBLEM, num_sequences=2 * BLOCK + 1, key=getkey(), progress=progress)
    assert progress.calls == [("measuring", 3), 1, 2, 3]
    progress = Recorded()
    profile(TWO, PROBLEM, [0.0, 1.0], num_sequences=10, progress=progress)
    assert progress.calls == [("noise levels", 2), 1, 2]


def test_one_predictor_needs_no_name_and_several_do(getkey):
    alone = evaluate(LeastSquares(), PROBLEM, num_sequences=100)
    assert alone.names == ("LeastSquares",)
    assert alone.adjusted() == alone.adjusted("LeastSquares")
    assert np.array_equal(alone.losses(), evaluate(TWO, PROBLEM, num_sequences=100, key=0).losses("ols"))
    for name in (None, "mine"):
        with pytest.raises(ValueError, match=f"`name` must be one of ols, ada, got {name!r}"):
            evaluate(TWO, PROBLEM, num_sequences=10).adjusted(name)
    model = Full.random(2, dim=4, num_examples=9, key=getkey())
    assert evaluate([model, "ols"], PROBLEM, num_sequences=10).names == ("full-2", "ols")


def test_a_model_given_by_name_is_measured_on_its_own_problem(tmp_path, getkey):
    named = evaluate("gd++-2-choice(1,3)", num_sequences=100, key=3)
    assert str(named.problem) == "NoisyRegression(dim=10, num_examples=20, noise='choice(1,3)')"
    given = evaluate(
        {"m": zoo.load("gd++-2-choice(1,3)")}, named.problem, num_sequences=100, key=jax.random.key(3)
    )
    assert np.array_equal(named.losses(), given.losses("m"))
    beside = evaluate(["gd++-2-choice(1,3)", "ada-ridge"], num_sequences=100, key=3)
    assert np.array_equal(beside.losses("gd++-2-choice(1,3)"), named.losses())
    save(Diagonal.random(1, dim=4, num_examples=9, key=getkey()), tmp_path / "m.safetensors")
    for unknown in ("bayes", LeastSquares(), str(tmp_path / "m.safetensors")):
        with pytest.raises(ValueError, match="`problem` must be given, as in"):
            evaluate(unknown)
    with pytest.raises(ValueError, match="`problem` must be given, since models were trained on different ones"):
        evaluate(["gd++-2-choice(1,3)", "gd++-2-uniform(0,5)"])


def test_results_show_their_settings():
    losses = evaluate({"mine": LeastSquares()}, PROBLEM, num_sequences=100, key=7)
    assert repr(losses) == f"Comparison(mine={losses.adjusted()}, num_sequences=100, key=7)"
    assert "key=key[0, 7]" in repr(evaluate(TWO, PROBLEM, num_sequences=100, key=jax.random.key(7)))
    assert losses.to_rows() == [
        {"method": "mine", "layers": None, "noise": "uniform(0,3)"} | losses.adjusted().as_adjusted_loss()
    ]


def _check_column(noise, num_sequences, key):
    problem = NoisyRegression(noise=noise)
    names = ("const-ridge", "ada-ridge", "tuned-ridge")
    keys = jax.random.split(key, 3)
    predictors = {name: baseline(name, problem, key=keys[0]) for name in names}
    measured = evaluate(
        predictors | {"bayes": Bayes(problem.noise)}, problem, num_sequences=num_sequences, key=keys[1]
    )
    protocol = evaluate(predictors, problem, num_sequences=100_000, protocol=True, key=keys[2])
    for name in names:
        printed = paper.printed_table1()[name, None, noise]
        single = Estimate.from_values(protocol.protocol_losses[name, None])
        error = np.hypot(single.standard_error, measured.adjusted(name).standard_error)
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
    model = Full.random(2, dim=4, num_examples=9, scale=0.1, key=getkey())
    assert np.isfinite(evaluate({"full": model}, PROBLEM, num_sequences=100, key=getkey()).adjusted("full").mean)


def test_the_protocol_can_be_measured_beside_the_exact_loss(getkey):
    """One query is sampled for each sequence, and two squared errors are subtracted."""
    key = getkey()
    both = evaluate(TWO, PROBLEM, num_sequences=6_000, protocol=True, key=key)
    sequence_key, query_key = jax.random.split(jax.random.fold_in(key, 0))
    stats, truth = sample_statistics(PROBLEM, (BLOCK,), key=sequence_key)
    query = jax.random.normal(query_key, (BLOCK, 4))
    mine, best = AdaptiveRidge().weights(stats), oracle_weights(stats, truth.noise_std)
    errors = [0.5 * jnp.sum((w - truth.weights) * query, axis=1) ** 2 for w in (mine, best)]
    sampled = np.asarray(errors[0] - errors[1])[:6_000]
    assert np.allclose(both.protocol_losses["ada", None], sampled, rtol=1e-9, atol=1e-12)
    means = both.protocol_means("ada", num_sequences=2500)
    assert np.allclose(means, [sampled[:2500].mean(), sampled[2500:5000].mean()])
    with pytest.raises(ValueError, match="must be at most 6,000"):
        both.protocol_means("ada", num_sequences=6_001)
