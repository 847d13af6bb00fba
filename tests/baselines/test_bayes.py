from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from baselines_helpers import PROBLEM, map_to_numpy, ridge
from lintra.baselines import BASELINES, Bayes, UnitBlindBayes, baseline, oracle_weights
from lintra.evaluation.adjusted_loss import evaluate
from lintra.problem.noise import AbstractNoisePrior, Uniform
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics

LEGENDRE = np.polynomial.legendre.leggauss(1500)


def _dense_bayes(stats, noise: Uniform):
    """The posterior mean by brute force: very many nodes over the whole prior."""
    s, v = np.linalg.eigh(stats.xx)
    n, d = int(stats.num_examples), stats.dim
    s, alpha = np.maximum(s, 0), v.T @ np.asarray(stats.xy)
    if n < d:
        s[: d - n], alpha[: d - n] = 0, 0
    nodes, prior = LEGENDRE
    noise_std = noise.low + (noise.high - noise.low) * (nodes + 1) / 2
    total = s[:, None] + noise_std**2
    quadratic = (stats.yy - np.sum(alpha[:, None] ** 2 / total, 0)) / noise_std**2
    log = -0.5 * (np.log(total).sum(0) + (n - d) * np.log(noise_std**2) + quadratic)
    weights = prior * np.exp(log - log.max())
    return v @ (alpha * ((1 / total) @ weights) / weights.sum())


@pytest.mark.parametrize(
    ("num_examples", "dim", "noise_std"),
    [(8, 10, 2.0), (8, 10, 0.1), (10, 10, 1.0), (11, 10, 3.0), (20, 10, 0.3), (20, 10, 4.9), (200, 30, 2.0)],
)
def test_bayes_against_a_dense_grid(num_examples, dim, noise_std, getkey):
    """To rounding for n > d; for n ≤ d noise below rounding, which stands for zero, leaves a trace."""
    tolerance = 1e-11 if num_examples > dim else 2e-7
    problem = NoisyRegression(dim=dim, num_examples=num_examples, noise=f"fixed({noise_std})")
    stats, _ = sample_statistics(problem, (20,), key=getkey())
    prior = Uniform(0, 5)
    weights = Bayes(prior).weights(stats)
    for i in range(20):
        one = map_to_numpy(jax.tree.map(lambda leaf, i=i: leaf[i], stats))
        expected = _dense_bayes(one, prior)
        assert np.abs(weights[i] - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.parametrize("noise_std", [0.01, 1.0, 4.999])
def test_bayes_at_a_million_examples_knows_the_noise(noise_std, getkey):
    """There the posterior has a relative width of 1/√(2n); a dense grid around σ resolves it."""
    problem = NoisyRegression(num_examples=1_000_000, noise=f"fixed({noise_std})")
    stats, _ = sample_statistics(problem, key=getkey())
    prior = Uniform(0, 5)
    posterior_std = float(Bayes(prior).posterior_mean_std(stats))
    assert posterior_std == pytest.approx(noise_std, rel=5 / np.sqrt(2e6))
    s = np.linalg.eigvalsh(stats.xx)
    near = Uniform(0.99 * noise_std, min(1.01 * noise_std, 5))
    dense, weights = _dense_bayes(map_to_numpy(stats), near), Bayes(prior).weights(stats)
    assert np.abs(weights - dense).max() < 1e-7 * noise_std**2 / s[0] + 1e-14


def test_bayes_with_atoms_is_the_weighted_sum(getkey):
    x, y, _ = map_to_numpy(sample_data(PROBLEM, key=getkey()))
    values, prior = np.asarray([1.0, 3.0]), np.asarray([0.25, 0.75])
    densities = []
    for noise_std in values:
        covariance = x @ x.T + noise_std**2 * np.eye(9)
        _, log_det = np.linalg.slogdet(covariance)
        densities.append(np.exp(-0.5 * (log_det + y @ np.linalg.solve(covariance, y))))
    posterior = prior * densities / np.sum(prior * densities)
    expected = sum(p * ridge(x, y, noise_std**2) for p, noise_std in zip(posterior, values, strict=True))
    assert np.allclose(Bayes("choice(1:1,3:3)").weights(GramStatistics.from_data(x, y)), expected, rtol=1e-11)


def test_bayes_with_a_known_noise_is_the_oracle(getkey):
    stats, truth = sample_statistics(NoisyRegression(noise="fixed(2)"), (10,), key=getkey())
    for text in ("fixed(2)", "uniform(2,2)", "choice(2)"):
        assert np.allclose(Bayes(text).weights(stats), oracle_weights(stats, truth.noise_std), rtol=1e-12)


def test_bayes_tells_noise_free_sequences_from_noisy_ones(getkey):
    stats, truth = sample_statistics(NoisyRegression(noise="choice(0,2)"), (200,), key=getkey())
    weights = Bayes("choice(0,2)").weights(stats)
    assert np.allclose(weights, oracle_weights(stats, truth.noise_std), atol=1e-10)


def test_bayes_with_labels_that_are_all_zero_is_zero():
    stats = GramStatistics.from_data(np.eye(3), np.zeros(3))
    for text in ("uniform(0,5)", "uniform(0,0)", "choice(0,1)"):
        assert (Bayes(text).weights(stats) == 0).all()


@pytest.mark.usefixtures("quick_tuning")
@pytest.mark.parametrize("noise", ["uniform(0,2)", "uniform(0,5)", "choice(1,3)"])
def test_bayes_is_below_every_method_that_does_not_know_the_noise(noise, getkey):
    problem = NoisyRegression(noise=noise)
    predictors = {name: baseline(name, problem, key=getkey()) for name in BASELINES}
    comparison = evaluate(predictors, problem, num_sequences=16_384, key=getkey())  # all gaps are above ten errors
    for name in set(BASELINES) - {"bayes"}:
        gap = comparison.difference("bayes", name)
        assert gap.mean < -3 * gap.standard_error, name


class LikeUniform(AbstractNoisePrior):
    """A uniform prior without a rule of its own for the posterior."""

    name: ClassVar[str] = "like-uniform"
    high: float

    def sample(self, key, shape=(), dtype=float):
        return self.high * jax.random.uniform(key, shape, dtype)

    def quadrature(self, num_nodes=64):
        nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
        return self.high * (jnp.asarray(nodes) + 1) / 2, jnp.asarray(weights) / 2


def test_a_prior_without_a_rule_has_the_posterior_of_its_quadrature(getkey):
    stats, _ = sample_statistics(PROBLEM, (200,), key=getkey())
    plain, ruled = Bayes(LikeUniform(5.0)).weights(stats), Bayes("uniform(0,5)").weights(stats)
    np.testing.assert_allclose(plain, ruled, rtol=1e-5, atol=1e-7)


def test_a_prior_written_with_numpy_is_rejected(getkey):
    class Traced(LikeUniform):
        def quadrature(self, num_nodes=64):  # pyright: ignore[reportIncompatibleMethodOverride] # NumPy on purpose
            return np.asarray([self.high]), np.ones(1)

    stats, _ = sample_statistics(PROBLEM, key=getkey())
    with pytest.raises(TypeError, match=r"`Traced.quadrature` cannot be traced: write it with `jax.numpy`"):
        Bayes(Traced(1.0)).weights(stats)


@pytest.mark.parametrize(("n", "d"), [(6, 2), (3, 5)])
def test_the_unit_blind_bayes_predictor_is_the_posterior_mean_by_brute_force(n, d):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    y = 7 * (x @ rng.normal(size=d) + rng.normal(size=n))
    # The posterior of (r, τ) on a grid: y ~ N(0, τ² (X Xᵀ + r²)), p(r) uniform on [0, 3], p(τ) ∝ 1/τ.
    r = (np.arange(3000) + 0.5) / 1000
    log_tau = np.linspace(-8, 14, 3001)
    values, vectors = np.linalg.eigh(x @ x.T)
    along = (vectors.T @ y) ** 2
    total = np.maximum(values, 0) + r[:, None] ** 2
    log_density = (
        -0.5 * np.log(total).sum(axis=1)[:, None]
        - n * log_tau
        - 0.5 * np.exp(-2 * log_tau) * (along / total).sum(axis=1)[:, None]
    )
    probability = np.exp(log_density - log_density.max()).sum(axis=1)
    probability /= probability.sum()
    ridges = np.linalg.solve(x.T @ x + r[:, None, None] ** 2 * np.eye(d), x.T @ y[:, None])[..., 0]
    found = UnitBlindBayes("uniform(0,3)").weights(GramStatistics.from_data(x, y))
    np.testing.assert_allclose(found, probability @ ridges, rtol=2e-4)


def test_the_unit_blind_bayes_predictor_follows_the_unit_and_is_better_than_a_guessed_one():
    problem = NoisyRegression(dim=4, num_examples=12, noise="uniform(0,3)")
    stats, truth = sample_statistics(problem, (20_000,), key=jax.random.key(5))
    predictor = UnitBlindBayes(problem.noise)
    weights = predictor.weights(stats)
    np.testing.assert_allclose(predictor.weights(stats.divide_labels(1e-3)), 1e3 * weights, rtol=1e-9)
    guessed = Bayes(problem.noise).weights(stats.divide_labels(stats.label_rms / 2)) * stats.label_rms[:, None] / 2
    loss, guessed_loss = (0.5 * np.sum((w - truth.weights) ** 2, axis=-1) for w in (weights, guessed))
    gain = np.asarray(guessed_loss - loss)
    assert gain.mean() > 4 * gain.std() / len(gain) ** 0.5


@pytest.mark.parametrize("predictor", [Bayes("fixed(2)"), UnitBlindBayes("fixed(2)")])
def test_excess_risk_is_the_distance_in_posterior_standard_deviations(predictor):
    rng = np.random.default_rng(0)
    x, y, other = rng.normal(size=(9, 3)), rng.normal(size=9), rng.normal(size=3)
    stats = GramStatistics.from_data(x, y)
    best, excess = predictor.compare(stats, jnp.asarray(other))
    np.testing.assert_allclose(best, predictor.weights(stats), rtol=1e-12)
    precision = x.T @ x / 4 + np.eye(3)
    if isinstance(predictor, UnitBlindBayes):  # the most likely τ² is yᵀ (X Xᵀ + 4)⁻¹ y / n
        precision /= y @ np.linalg.solve(x @ x.T + 4 * np.eye(9), y) / 9
    difference = other - np.asarray(best)
    assert float(excess) == pytest.approx(difference @ precision @ difference / 3, rel=1e-9)
    assert float(predictor.compare(stats, best)[1]) == pytest.approx(0, abs=1e-12)
