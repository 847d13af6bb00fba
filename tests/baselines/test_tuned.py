import numpy as np

from lintra.baselines import TunedRidge
from lintra.evaluation.adjusted_loss import evaluate
from lintra.problem.noisy_regression import NoisyRegression


def test_tuning_finds_the_minimum_and_is_judged_on_other_sequences(getkey):
    problem = NoisyRegression(noise="choice(1,3)")
    tuned = TunedRidge.tuned(problem, key=getkey())
    moved = {
        f"{a},{b}": TunedRidge(tuned.multiplier * a, tuned.ceiling * b)
        for a, b in ((1.0, 1.0), (0.8, 1.0), (1.25, 1.0), (1.0, 0.8), (1.0, 1.25))
    }
    comparison = evaluate(moved, problem, num_sequences=200_000, key=getkey())
    for name in moved:
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
