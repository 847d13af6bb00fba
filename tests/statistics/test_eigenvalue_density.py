import numpy as np
import pytest

from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.eigenvalue_density import wishart_quadrature
from lintra.statistics.sampling import sample_statistics

SIZES = [
    (1, 1),
    (1, 5),
    (8, 10),
    (10, 10),
    (11, 10),
    (20, 10),
    (21, 11),
    (50, 5),
    (64, 64),
    (200, 30),
    (1_000_000, 10),
    (400, 300),
    (1000, 500),
]


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_the_eigenvalue_density_has_the_known_moments(n, d):
    s, weights = wishart_quadrature(n, d)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(d, rel=1e-12)
    assert weights @ s == pytest.approx(n * d, rel=1e-12)
    assert weights @ s**2 == pytest.approx(n * d * (n + d + 1), rel=1e-12)
    if n > d + 1:
        assert weights @ (1 / s) == pytest.approx(d / (n - d - 1), rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(4, 4), (7, 5), (3, 6)])
def test_the_eigenvalue_density_is_that_of_samples(n, d, getkey):
    """Means of functions that probe the whole range, within 4 standard errors on 100,000 matrices."""
    stats, _ = sample_statistics(NoisyRegression(dim=d, num_examples=n), (100_000,), key=getkey())
    values = np.linalg.eigvalsh(stats.xx)
    values[:, : max(d - n, 0)] = 0
    s, weights = wishart_quadrature(n, d)
    for f in (lambda s: np.exp(-s), lambda s: 1 / (s + 0.01), np.sqrt, lambda s: s > 5.0):
        sums = f(values).sum(axis=1)
        tolerance = 4 * sums.std() / len(sums) ** 0.5 + 1e-2 * (f(np.asarray(4.9)) == 0)
        assert abs(weights @ f(s) - sums.mean()) < tolerance
