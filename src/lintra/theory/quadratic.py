"""Theorem 4.2: what a linear transformer puts out has little to do with a quadratic target.

The labels after any layer are `y' = X v` for some v. The cosine to `y* = (xᵢ(1)²)` is largest for y*'s projection
on the columns of X. As n grows its square times n goes to `χ²(d−1) + 5 χ²(1)`, which has mean d + 4; for a
random v the mean is 1 + 4/d. So the printed orders √(d/n) and 1/√n come with their constants.
"""

import jax
import numpy as np

from lintra import zoo
from lintra.display import Curve, Plot
from lintra.evaluation.estimate import Estimate
from lintra.models.adapters import Rescaled
from lintra.models.base import AbstractModel
from lintra.statistics.gram import GramStatistics
from lintra.theory.check import Check, ClaimResult, LineFit

_COUNTS = (400, 800, 1600, 3200, 6400, 12_800, 25_600)
_DIMS = (1, 2, 5, 10, 20, 40)
_DRAWS = 200
_ERRORS = 4  # standard errors
_TRAINED = ("diag-7-uniform(0,5)", "full-7-uniform(0,5)")


def theorem_4_2(power: float = -0.5) -> ClaimResult:
    """Theorem 4.2: the cosine falls like √(d/n) at worst, like 1/√n for a random w, and gets below 0.1."""
    by_count = {count: squares(count, 10) for count in _COUNTS}
    rates = {
        "worst w": (0, 10 + 4),
        "random w": (1, 1 + 4 / 10),
    }
    checks, curves = [], []
    for name, (index, limit) in rates.items():
        means, errors = _moments([values[index] for values in by_count.values()])
        fit = LineFit.fit(np.log(_COUNTS), 0.5 * np.log(means), 0.5 * errors / means)
        checks += [
            Check(
                "theorem-4.2",
                f"cosine against n, slope for {name}: {fit}",
                fit.value,
                power,
                _ERRORS * fit.standard_error,
            ),
            Check(
                "theorem-4.2",
                f"n times the squared cosine at n = {_COUNTS[-1]:,}, {name}",
                float(_COUNTS[-1] * means[-1]),
                limit,
                _ERRORS * float(_COUNTS[-1] * errors[-1]),
            ),
        ]
        error = 0.5 * errors / np.sqrt(means)
        curves.append(Curve(name, _COUNTS, np.sqrt(means), error))
        curves.append(Curve(f"{name}, limit", _COUNTS, np.sqrt(limit / np.asarray(_COUNTS)), dashed=True))
    by_dim = [squares(6400, dim)[0] * 6400 for dim in _DIMS]
    means, errors = _moments(by_dim)
    fit = LineFit.fit(_DIMS, means, errors)
    checks.append(
        Check(
            "theorem-4.2",
            f"n times the squared cosine against d, slope for the worst w: {fit}",
            fit.value,
            1.0,
            _ERRORS * fit.standard_error,
        )
    )
    largest = float(np.sqrt(np.quantile(squares(6400, 10)[0], 0.99)))
    checks.append(Check("theorem-4.2", "99 % of worst cosines at n = 6,400, d = 10", largest, 0.1, 0.0, "≤"))
    for name in _TRAINED:
        cosines = [trained_squares(zoo.load(name), count) for count in _COUNTS[:4]]
        means, errors = _moments(cosines)
        curves.append(Curve(name, _COUNTS[:4], np.sqrt(means), 0.5 * errors / np.sqrt(means)))
        worst = float(np.sqrt(10 + 4) / np.sqrt(_COUNTS[3]))
        statement = f"cosine of the labels after the last layer at n = {_COUNTS[3]:,}, {name}, below the worst w's"
        checks.append(Check("theorem-4.2", statement, float(np.sqrt(means[-1])), worst, 0.0, "≤"))
    return ClaimResult(checks, [Plot("Theorem 4.2, d = 10", "Number of examples n", "Cosine to x(1)²", curves)])


def squares(count: int, dim: int, num_draws: int = _DRAWS) -> tuple[np.ndarray, np.ndarray]:
    """Squared cosines of many contexts: of the worst v, and of a random one."""
    rng = np.random.default_rng(count + dim)
    worst, random = np.empty(num_draws), np.empty(num_draws)
    for draw in range(num_draws):
        x = rng.normal(size=(count, dim))
        target = x[:, 0] ** 2
        along, size = x.T @ target, target @ target
        sigma, v = x.T @ x, rng.normal(size=dim)
        worst[draw] = along @ np.linalg.solve(sigma, along) / size
        random[draw] = (along @ v) ** 2 / (v @ sigma @ v * size)
    return worst, random


def trained_squares(model: AbstractModel, count: int, num_draws: int = _DRAWS // 2) -> np.ndarray:
    """Squared cosines of what a model puts out without noise, with Gram matrices rescaled to its own n."""
    rng = np.random.default_rng(count)
    x, w = rng.normal(size=(num_draws, count, model.dim)), rng.normal(size=(num_draws, model.dim))
    y = np.einsum("bnd,bd->bn", x, w)
    stats = GramStatistics.from_data(x, y)
    implicit_map = jax.tree.map(np.asarray, model.implicit(Rescaled(model).rescale(stats)))
    labels = implicit_map.a[:, -1, None] * y - np.einsum("bnd,bd->bn", x, implicit_map.w[:, -1])
    target = x[..., 0] ** 2
    return (labels * target).sum(1) ** 2 / ((labels**2).sum(1) * (target**2).sum(1))


def _moments(values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard errors."""
    estimates = [Estimate.from_values(each) for each in values]
    return np.asarray([e.mean for e in estimates]), np.asarray([e.standard_error for e in estimates])
