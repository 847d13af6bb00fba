import numpy as np
import pytest

from lintra.baselines import AdaptiveRidge, IterativeRidge
from lintra.evaluation.adjusted_loss import evaluate
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics


@pytest.mark.parametrize("num_squarings", [0, 3])
def test_the_iterative_method_converges_to_adarr(num_squarings, getkey):
    stats, _ = sample_statistics(NoisyRegression(), (50,), key=getkey())
    far = IterativeRidge(20_000, num_squarings).weights(stats)
    assert np.allclose(far, AdaptiveRidge().weights(stats), atol=1e-8)


def test_the_iterative_method_takes_tens_of_steps(getkey):
    """Steps until the adjusted loss stays within 5 % of AdaRR's, at uniform(0,5)."""
    problem, key = NoisyRegression(), getkey()
    target = evaluate({"ada": AdaptiveRidge()}, problem, num_sequences=20_000, key=key).adjusted("ada").mean
    path = evaluate(IterativeRidge(100), problem, num_sequences=20_000, every_layer=True, key=key)
    away = np.asarray([abs(path.adjusted(layer=k + 1).mean / target - 1) for k in range(100)])
    steps = int(np.max(np.nonzero(away > 0.05))) + 2
    assert 10 < steps < 100


def test_the_iterative_method_is_safe_when_the_labels_miss_the_top_direction():
    x = np.vstack([np.diag([3.0, 1, 1, 1, 1]), -np.diag([3.0, 1, 1, 1, 1])])
    stats = GramStatistics.from_data(x, x @ np.asarray([0.0, 1, 1, 1, 1]))
    assert np.allclose(IterativeRidge(500).weights(stats), [0, 1, 1, 1, 1], atol=1e-6)
