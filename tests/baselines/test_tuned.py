import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.baselines import TunedRidge, tuned
from lintra.evaluation.adjusted_loss import evaluate
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics


def test_tuning_finds_the_minimum_and_is_judged_on_other_sequences(getkey):
    problem = NoisyRegression(noise="choice(1,3)")
    tuned = TunedRidge.tuned(problem, key=getkey())
    moved = {
        f"{a},{b}": TunedRidge(tuned.multiplier * a, tuned.ceiling * b)
        for a, b in ((1.0, 1.0), (0.8, 1.0), (1.25, 1.0), (1.0, 0.8), (1.0, 1.25))
    }
    comparison = evaluate(moved, problem, num_sequences=16_384, key=getkey())
    for name in moved:  # all are worse by more than 38 standard errors
        if name != "1.0,1.0":
            worse = comparison.difference(name, "1.0,1.0")
            assert worse.mean > 2 * worse.standard_error, name
    assert comparison.adjusted("1.0,1.0").mean < 0.5 * 0.051  # AdaRR's, Table 1


def test_tuning_respects_the_covariance(getkey):
    problem = NoisyRegression(
        dim=4, num_examples=9, noise="uniform(0,5)", covariance=np.asarray([0.01, 0.01, 1.0, 9.0])
    )
    tuned = TunedRidge.tuned(problem, key=getkey())
    isotropic = TunedRidge.tuned(NoisyRegression(dim=4, num_examples=9, noise="uniform(0,5)"), key=getkey())
    comparison = evaluate({"own": tuned, "other": isotropic}, problem, key=getkey())
    gain = comparison.difference("own", "other")
    assert gain.mean < -3 * gain.standard_error


@pytest.mark.parametrize("covariance", [None, (0.5, 1.0, 3.0, 5.0)])
@pytest.mark.parametrize("noise", ["uniform(0,5)", "choice(0,2)"])
def test_the_loss_that_is_minimised_is_that_of_the_weights(noise, covariance, getkey):
    problem = NoisyRegression(dim=4, num_examples=9, noise=noise, covariance=covariance)
    key = getkey()
    sequences = tuned._prepare(problem, key, 2)
    drawn = [sample_statistics(problem, (tuned._BLOCK,), key=one) for one in jax.random.split(key)]
    xx, xy, yy, noise_std = (
        np.concatenate(parts)
        for parts in zip(*((stats.xx, stats.xy, stats.yy, truth.noise_std) for stats, truth in drawn), strict=True)
    )
    xy = xy[..., None]
    estimate = (yy - np.sum(xy * np.linalg.solve(xx, xy), axis=(1, 2))).clip(0) / (9 - 4)
    for multiplier, ceiling in ((1.0, 2.0), (1.7, 0.3)):
        guessed, oracle = (
            np.linalg.solve(xx + penalty[:, None, None] * np.eye(4), xy)[..., 0]
            for penalty in (multiplier * np.minimum(estimate, ceiling), noise_std**2)
        )
        missed = guessed - oracle
        metric = np.diag(np.ones(4) if covariance is None else covariance)
        expected = 0.5 * np.einsum("bi,ij,bj->b", missed, metric, missed).mean()
        assert float(tuned._loss(jnp.asarray([multiplier, ceiling]), sequences)) == pytest.approx(
            expected, rel=1e-9
        )
