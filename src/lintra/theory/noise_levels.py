"""§5.2 and §5.3: what ω_yy and ω_xy do about the noise level, with two layers."""

import jax
import jax.numpy as jnp
import numpy as np

from lintra.baselines.oracle import oracle_weights
from lintra.baselines.ridge import LeastSquares
from lintra.display import Curve, Plot
from lintra.evaluation.estimate import Estimate
from lintra.models.diagonal import diagonal_recursion
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import Truth, sample_statistics
from lintra.theory.check import Check, ClaimResult, LineFit

_COUNTS = (1000, 4000, 16_000, 64_000, 256_000, 1_024_000)
_PAIRS = ((0.5, 2.0), (1.0, 3.0), (0.2, 5.0))
_SEQUENCES = 4000
_ERRORS = 4  # standard errors
_EXACT = 1e-11


def two_noise_levels(first: float, second: float, count: int, sign: float = -1.0) -> np.ndarray:
    """The two layers of Theorem 5.2: ω_yx alone, then ω_yy alone.

    They solve `(1 + n σ² ω_yy) (−ω_yx) = 1/(1 + σ²)` at both levels, which is linear in −ω_yx and −ω_yx ω_yy.
    The proof has ω_yx where it should have −ω_yx, by the paper's own readout.
    """
    noise_stds = np.asarray([first, second]) ** 2
    base, product = np.linalg.solve(np.column_stack([np.ones(2), count * noise_stds]), 1 / (1 + noise_stds))
    return np.asarray([[[0.0, 0.0], [sign * base, 0.0]], [[0.0, 0.0], [0.0, product / base]]])


def theorem_5_2(sign: float = -1.0, power: float = -1.0) -> ClaimResult:
    """Theorem 5.2: with x ~ N(0, I/n) two layers converge to ridge regression at two noise levels."""
    checks, curves = [], []
    for pair in _PAIRS:
        for noise_std in pair:
            means, errors = _distances(pair, noise_std, sign)
            fit = LineFit.fit(np.log(_COUNTS), np.log(means), errors / means)
            name = f"σ = {noise_std:g} of {{{pair[0]:g}, {pair[1]:g}}}"
            statement = f"mean squared distance to ridge against n, slope for {name}: {fit}"
            checks.append(Check("theorem-5.2", statement, fit.value, power, _ERRORS * fit.standard_error))
            curves.append(Curve(name, _COUNTS, means, errors))
    printed = _distances(_PAIRS[0], _PAIRS[0][0], -sign)[0]
    checks.append(
        Check(
            "theorem-5.2",
            f"the same with ω_yx's sign as in the proof, at n = {_COUNTS[-1]:,}",
            float(printed[-1]),
            0.0,
            1e-3,
            "≤",
            misprint=True,
        )
    )
    plot = Plot("Theorem 5.2", "Number of examples n", "Mean squared distance to ridge", curves)
    return ClaimResult(checks, [plot])


def _distances(pair: tuple[float, float], noise_std: float, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean squared distance to ridge at every n, and its standard error."""
    estimates = []
    for count in _COUNTS:
        problem = NoisyRegression(
            dim=5, num_examples=count, noise=f"fixed({noise_std})", covariance=np.full(5, 1 / count)
        )
        stats, truth = sample_statistics(problem, (_SEQUENCES,), key=jax.random.key(count))
        w = diagonal_recursion(jnp.asarray(two_noise_levels(*pair, count, sign)), stats.gram)
        values = np.sum((np.asarray(w) - np.asarray(oracle_weights(stats, truth.noise_std))) ** 2, axis=-1)
        estimates.append(Estimate.from_values(values))
    return np.asarray([e.mean for e in estimates]), np.asarray([e.standard_error for e in estimates])


def section_5_2(exponent: float = 2.0) -> ClaimResult:
    """§5.2: `w_σ ≈ n/(n + σ²) w*`: how good that is at n = 20, and that it becomes good as n grows."""
    noise_stds, checks, curves = (0.5, 1.0, 2.0, 3.0, 5.0), [], []
    by_count = {}
    for count in (20, 200, 2000):
        shares = []
        for noise_std in noise_stds:
            stats, truth = _contexts(noise_std, count)
            best = np.asarray(LeastSquares().weights(stats))
            ridge = np.asarray(oracle_weights(stats, truth.noise_std))
            approximate = count / (count + noise_std**exponent) * best
            shares.append(float(((approximate - ridge) ** 2).sum() / (ridge**2).sum()))
        by_count[count] = np.asarray(shares)
        curves.append(Curve(f"n = {count}", noise_stds, shares))
    missed = (5.0**2 / 2000) ** 2 * (10 + 1) / 2000  # Σ/n misses the identity by (d + 1)/n in every direction
    statement = "share missed at n = 2,000, σ = 5: (σ²/n)² (d + 1)/n"
    checks.append(Check("section-5.2", statement, by_count[2000][-1], missed, 0.05 * missed))
    listed = ", ".join(f"{share:.2f}" for share in by_count[20])
    statement = f"share of ‖w_σ‖² missed at n = 20 for σ = 0.5, 1, 2, 3, 5 ({listed}): small at 5"
    checks.append(Check("section-5.2", statement, by_count[20][-1], 0.1, 0.0, "≤", misprint=True))
    title = "§5.2: error of n/(n + σ²) w* as ridge regression"
    plot = Plot(title, "Noise level σ", "Share of ‖w_σ‖² missed", curves, xscale="linear")
    return ClaimResult(checks, [plot])


def section_5_3(term: str = "λ") -> ClaimResult:
    """§5.3: two layers, ω_xy then ω_yx, are exactly `w = −ω_yx (1 + ω_xy λ) α`; the text keeps Σr² of λ."""
    xy, yx = -0.002, -0.04
    omega = jnp.asarray([[[0.0, xy], [0.0, 0.0]], [[0.0, 0.0], [yx, 0.0]]])
    noise_stds, checks, shares = (0.5, 1.0, 2.0, 3.0, 5.0), [], []
    for noise_std in noise_stds:
        stats, _ = _contexts(noise_std, 20)
        best, gram = np.asarray(LeastSquares().weights(stats)), np.asarray(stats.gram)
        square, alpha = gram[:, -1, -1], gram[:, :-1, -1]
        residual = square - np.einsum("bi,bi->b", alpha, best)
        w = np.asarray(diagonal_recursion(omega, stats.gram))
        forms = {"λ": square, "Σr²": residual}
        for form, misprint in ((term, False), ("Σr²" if term == "λ" else "λ", True)):
            step = -yx * (1 + xy * forms[form])[:, None] * alpha
            error = float(np.abs(step - w).max() / np.abs(w).max())
            statement = f"w² = −ω_yx (1 + ω_xy {form}) α at σ = {noise_std:g}"
            checks.append(Check("section-5.3", statement, error, 0.0, _EXACT, misprint=misprint))
        shares.append(float((square - residual).mean() / square.mean()))
        predicted = (200 + 10 * noise_std**2) / (200 + 20 * noise_std**2)
        statement = (
            f"share of λ that the text neglects at n = 20, d = 10, σ = {noise_std:g}: (nd + dσ²)/(nd + nσ²)"
        )
        checks.append(Check("section-5.3", statement, shares[-1], predicted, 0.02))
    curve = Curve("measured", noise_stds, shares)
    plot = Plot("§5.3: share of λ = Σy² neglected", "Noise level σ", "Share", [curve], "linear", "linear")
    return ClaimResult(checks, [plot])


def _contexts(noise_std: float, count: int) -> tuple[GramStatistics, Truth]:
    problem = NoisyRegression(dim=10, num_examples=count, noise=f"fixed({noise_std})")
    return sample_statistics(problem, (_SEQUENCES,), key=jax.random.key(round(100 * noise_std)))
