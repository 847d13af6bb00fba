"""Losses known exactly, without sampling a sequence: the oracle, constant ridge and the best single layer.

All carry the factor ½ and hold for isotropic inputs, where the eigenvalue density of Σ is known.
"""

import numpy as np

from lintra.kernel.precision import in_64_bits
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.eigenvalue_density import wishart_quadrature


def oracle_loss(problem: NoisyRegression) -> float:
    """Loss of ridge regression that knows σ: `½ E Σᵢ σ²/(sᵢ + σ²)`, the least that any predictor can have.

    >>> round(oracle_loss(NoisyRegression(noise="fixed(0)", dim=10, num_examples=5)), 6)  # half the inputs unseen
    2.5
    """
    with in_64_bits():
        noise_std, probability = (np.asarray(values) for values in problem.noise.quadrature())
    return float(sum(p * _mean_ridge_loss(problem, s**2) for s, p in zip(noise_std, probability, strict=True)))


def constant_ridge_loss(problem: NoisyRegression) -> float:
    """Loss of ridge regression with the constant E[σ²].

    Among all `w = f(Σ) α` the best is `f(s) = 1/(s + E[σ²])`: given the inputs it is the best linear
    estimate of w from α. GD++ makes only such polynomials, so this is a floor for GD++ at every depth.
    """
    return _mean_ridge_loss(problem, problem.noise.second_moment)


def one_layer_loss(problem: NoisyRegression) -> float:
    """Loss of the best single layer, `½ d (1 − n / (n + d + 1 + E[σ²]))`, the same for all three families."""
    _require_isotropic(problem)
    n, d = problem.num_examples, problem.dim
    return 0.5 * d * (1 - n / (n + d + 1 + problem.noise.second_moment))


def adjusted(loss: float, problem: NoisyRegression) -> float:
    """A loss minus the oracle's: what Table 1 prints.

    >>> problem = NoisyRegression(noise="uniform(0,0)")
    >>> round(adjusted(one_layer_loss(problem), problem), 3)
    1.774
    """
    return loss - oracle_loss(problem)


def _mean_ridge_loss(problem: NoisyRegression, noise_var: float) -> float:
    """`½ E Σᵢ v/(sᵢ + v)`: the loss when the noise has variance v and the penalty is v."""
    _require_isotropic(problem)
    nodes, weights = wishart_quadrature(problem.num_examples, problem.dim)
    share = np.ones_like(nodes)  # directions without data keep their prior variance
    share[nodes > 0] = noise_var / (nodes[nodes > 0] + noise_var)
    return 0.5 * float(weights @ share)


def _require_isotropic(problem: NoisyRegression) -> None:
    if not problem.is_isotropic:
        raise ValueError(
            "`problem` has an input covariance, for which no closed form is known here; "
            "use `lintra.evaluate` to measure the loss instead."
        )
