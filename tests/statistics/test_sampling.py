from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics
from members import random_rotation

LEVEL = 1e-3  # of every statistical test below; seeds are fixed, so each either holds for good or does not


def _features(stats, truth):
    """Numbers whose laws together pin down the law of (Σ, α, λ | w, σ)."""
    values = np.linalg.eigvalsh(stats.xx)
    residual = stats.xy - np.einsum("bij,bj->bi", stats.xx, truth.weights)
    rest = stats.yy - 2 * np.sum(truth.weights * np.asarray(stats.xy), -1)
    rest = rest + np.einsum("bi,bij,bj->b", truth.weights, stats.xx, truth.weights)
    named = {f"eigenvalue {i}": values[:, i] for i in range(values.shape[1])}
    named |= {"trace": np.trace(stats.xx, axis1=1, axis2=2), "corner": stats.xx[:, 0, -1]}
    named |= {"noise in α": residual[:, 0] / truth.noise_std, "noise in λ": rest / truth.noise_std**2}
    return named | {"α": stats.xy[:, -1], "λ": stats.yy, "w": truth.weights[:, 0], "σ": truth.noise_std}


@pytest.mark.parametrize("num_examples", [3, 4, 5, 9])
@pytest.mark.parametrize("covariance", [None, "spectrum", "rotated"])
def test_sampled_statistics_follow_the_law_of_drawn_data(num_examples, covariance, getkey):
    """Two-sample Kolmogorov–Smirnov tests of level LEVEL/16 each, 20,000 sequences a side."""
    spectrum = np.asarray([0.2, 1.0, 2.0, 4.0])
    rotation = random_rotation(np.random.default_rng(1), 4)
    choices = {None: None, "spectrum": spectrum, "rotated": rotation @ np.diag(spectrum) @ rotation.T}
    problem = NoisyRegression(
        dim=4, num_examples=num_examples, noise="uniform(1,3)", covariance=choices[covariance]
    )
    x, y, truth = sample_data(problem, (20_000,), key=getkey())
    drawn = _features(GramStatistics.from_data(x, y), truth)
    sampled = _features(*sample_statistics(problem, (20_000,), key=getkey()))
    for name, values in drawn.items():
        if num_examples < 4 and name == "eigenvalue 0":
            continue  # zero on both sides
        result: Any = laws.ks_2samp(values, sampled[name])
        assert result.pvalue > LEVEL / 16, name


@pytest.mark.parametrize("num_examples", [4, 20, 1_000_000])
def test_moments_of_sampled_statistics(num_examples, getkey):
    """Means of Σ, tr Σ², λ against their closed forms, within 4.5 standard errors."""
    d, n, size = 4, num_examples, 50_000
    stats, truth = sample_statistics(
        NoisyRegression(dim=d, num_examples=n, noise="fixed(2)"), (size,), key=getkey()
    )
    squares = np.sum(np.asarray(stats.xx) ** 2, axis=(1, 2))
    for values, mean in [
        (np.asarray(stats.xx[:, 0, 0]), n),
        (np.asarray(stats.xx[:, 0, 1]), 0),
        (squares, n * d * (n + d + 1)),
        (np.asarray(stats.yy), n * (d + 4)),
        (np.asarray(jnp.sum(stats.xy * truth.weights, -1)), n * d),
    ]:
        assert abs(values.mean() - mean) < 4.5 * values.std() / size**0.5


def test_noise_free_labels_lie_on_the_plane(getkey):
    stats, truth = sample_statistics(NoisyRegression(noise="fixed(0)"), (100,), key=getkey())
    assert np.allclose(stats.xy, jnp.einsum("bij,bj->bi", stats.xx, truth.weights), rtol=1e-12)


def test_n_equal_to_d_leaves_no_residual(getkey):
    stats, _ = sample_statistics(NoisyRegression(dim=4, num_examples=4), (100,), key=getkey())
    explained = np.einsum("bi,bi->b", stats.xy, np.linalg.solve(stats.xx, stats.xy[..., None])[..., 0])
    assert np.allclose(explained, stats.yy, rtol=1e-6)


def test_sampling_can_work_in_32_bits(getkey):
    for num_examples in (3, 20):
        stats, truth = sample_statistics(
            NoisyRegression(dim=4, num_examples=num_examples), (5,), jnp.float32, key=getkey()
        )
        assert stats.gram.dtype == truth.weights.dtype == truth.noise_std.dtype == jnp.float32
