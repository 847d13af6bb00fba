import numpy as np

from evaluation_helpers import PROBLEM, TWO
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.noise_profile import profile
from lintra.problem.noisy_regression import NoisyRegression


def test_a_profile_measures_at_each_noise_level(getkey):
    noise_stds, key = [0.0, 1.0, 2.0], getkey()
    comparisons = profile(TWO, PROBLEM, noise_stds, num_sequences=2000, key=key)
    assert len(comparisons) == 3
    for noise_std, comparison in zip(noise_stds, comparisons, strict=True):
        fixed = NoisyRegression(dim=4, num_examples=9, noise=f"fixed({noise_std})")
        alone = evaluate(TWO, fixed, num_sequences=2000, key=key)
        assert np.array_equal(comparison.losses("ols"), alone.losses("ols"))
    assert (comparisons[0].losses("ols") < 1e-20).all()
    assert comparisons[2].adjusted("ols").mean > comparisons[1].adjusted("ols").mean
