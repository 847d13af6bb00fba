import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation_helpers import BLOCK, PROBLEM, TWO
from lintra.baselines import AdaptiveRidge, LeastSquares, oracle_weights
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate, ProtocolQuantiles
from lintra.predictor import AbstractContextwise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics


def test_the_protocol_repeated_scatters_as_its_standard_error_says(getkey):
    measured = evaluate(TWO, PROBLEM, num_sequences=160_000, protocol=True, key=getkey())
    means = measured.protocol_means("ada", num_sequences=2000)[:30]
    single = Estimate.from_values(measured.protocol_losses["ada", None][60_000:])
    error = single.standard_error * (100_000 / 2000) ** 0.5
    assert 0.6 < means.std() / error < 1.5
    repeated = ProtocolQuantiles.from_means(means)
    assert repeated.low < repeated.median < repeated.high
    assert abs(repeated.median - single.mean) < 4 * 1.25 * error / 30**0.5


def test_the_protocol_is_that_of_its_repetitions_where_there_are_five(getkey):
    problem = NoisyRegression(dim=1, num_examples=3, noise="fixed(1)")
    measured = evaluate(LeastSquares(), problem, num_sequences=500_000, protocol=True, key=getkey())
    assert len(measured.protocol_means()) == 5
    shares = [np.sort(part)[-10:].sum() / part.sum() for part in measured.losses().reshape(5, -1)]
    expected = ProtocolQuantiles.from_means(measured.protocol_means(), top_share=measured.protocol().top_share)
    assert measured.protocol() == expected
    assert expected.top_share == pytest.approx(max(shares))
    with pytest.raises(ValueError, match="call `evaluate` with `protocol=True`"):
        evaluate(LeastSquares(), problem, num_sequences=10).protocol()


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
    infinite = int(np.isinf(comparison.losses("bad")).sum())
    assert comparison.num_exploded("bad") == infinite + int(
        (comparison.losses("bad")[np.isfinite(comparison.losses("bad"))] > 5 * PROBLEM.dim).sum()
    )
    summary = comparison.robust_summary("bad")
    assert (summary["median"], summary["num_exploded"], summary["num_sequences"]) == (tail.median, infinite, 1000)
    assert np.isfinite(comparison.adjusted("ols").mean)


def test_results_show_their_settings():
    losses = evaluate({"mine": LeastSquares()}, PROBLEM, num_sequences=100, key=7)
    assert repr(losses) == f"Comparison(mine={losses.adjusted()}, num_sequences=100, key=7)"
    assert "key=key[0, 7]" in repr(evaluate(TWO, PROBLEM, num_sequences=100, key=jax.random.key(7)))
    assert losses.to_rows() == [
        {"method": "mine", "layers": None, "noise": "uniform(0,3)"} | losses.adjusted().as_adjusted_loss()
    ]


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
