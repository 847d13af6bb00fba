import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

from lintra.statistics.chi import chi_from_normal


@pytest.mark.parametrize("freedom", [1, 2, 3, 11, 20, 1_000, 1_000_000])
def test_the_map_is_the_quantile_function(freedom):
    z = np.linspace(-8.3, 8.3, 1001)
    tail = laws.norm.cdf(-np.abs(z))
    law = laws.chi(freedom)
    expected = np.where(z < 0, law.ppf(tail), law.isf(tail))
    assert np.allclose(chi_from_normal(jnp.asarray(z)[:, None], (freedom,))[:, 0], expected, rtol=1e-9, atol=0)


def test_samples_follow_the_law_in_both_precisions(getkey):
    """Kolmogorov–Smirnov tests of level 1e-3/6 each."""
    freedom = (1, 5, 20)
    for dtype in (jnp.float32, jnp.float64):
        draws = chi_from_normal(jax.random.normal(getkey(), (20_000, 3), dtype), freedom)
        assert draws.dtype == dtype
        for column, k in enumerate(freedom):
            assert laws.kstest(np.asarray(draws[:, column], float), laws.chi(k).cdf).pvalue > 1e-3 / 6
