import jax
import numpy as np
import pytest

from lintra.experiments.free_diagonal import FreeDiagonal
from lintra.models import Diagonal
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics

PROBLEM = NoisyRegression(3, 8, "fixed(1)")
STATS = sample_statistics(PROBLEM, (5,), key=jax.random.key(1))[0]


def test_with_equal_entries_free_diagonals_are_diag():
    diagonal = Diagonal.random(2, dim=3, num_examples=8, scale=0.3, key=jax.random.key(2))
    p, q = (np.repeat(np.asarray(pair), [3, 1], axis=-1) for pair in (diagonal.p, diagonal.q))
    free = FreeDiagonal(p, q, 8)
    np.testing.assert_allclose(free.weights(STATS), diagonal.weights(STATS), atol=1e-14)
    np.testing.assert_allclose(free.averaged().p, diagonal.p)
    np.testing.assert_allclose(free.averaged().q, diagonal.q)


def test_free_diagonals_with_other_entries_are_not_diag_and_scale_with_labels():
    free = FreeDiagonal.random(2, dim=3, num_examples=8, scale=0.3, key=jax.random.key(2))
    assert np.abs(np.asarray(free.weights(STATS) - free.averaged().weights(STATS))).max() > 1e-2
    scaled, full = free.for_label_scale(2.0), free.to_full().for_label_scale(2.0)
    np.testing.assert_allclose(scaled.weights(STATS), full.weights(STATS), atol=1e-14)


def test_wrong_shapes_are_rejected():
    with pytest.raises(ValueError, match=r"one shape \(layers, heads, d\+1\), got \(1, 1, 3\) and \(1, 1, 4\)"):
        FreeDiagonal(np.zeros((1, 1, 3)), np.zeros((1, 1, 4)), 8)
