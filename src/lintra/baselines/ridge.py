"""Ridge regressions in closed form: the oracle, least squares, and two ways to guess the noise."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel.precision import in_64_bits
from lintra.predictor import AbstractContextwise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.spectrum import Spectrum


class AbstractRidge(AbstractContextwise):
    """Ridge regression `(Σ + penalty)⁻¹ α` whose penalty is a guess of σ², Eq. (5)."""

    @abc.abstractmethod
    def penalty(self, stats: GramStatistics, spectrum: Spectrum) -> Float[Array, ""]:
        """The guess of σ² for one context."""

    def solve(self, stats: GramStatistics) -> Float[Array, " d"]:
        """The weights for one context."""
        spectrum = Spectrum.from_statistics(stats)
        return spectrum.ridge(self.penalty(stats, spectrum))


class LeastSquares(AbstractRidge):
    """OLS, Eq. (4). With n < d or collinear inputs it is the solution of least norm."""

    def penalty(self, stats: GramStatistics, spectrum: Spectrum) -> Float[Array, ""]:
        """No penalty."""
        return jnp.zeros(())


class ConstantRidge(AbstractRidge):
    """ConstRR: one penalty for all sequences. Without noise the constant is zero, which is OLS."""

    constant: Float[Array, ""]

    def __init__(self, constant: float | Float[ArrayLike, ""]):
        with in_64_bits():
            self.constant = arguments.real_array("constant", constant)
        value = arguments.concrete(self.constant)
        if self.constant.ndim or (value is not None and value < 0):
            raise ValueError(f"`constant` must be one number and not negative, got {constant!r}.")

    @classmethod
    def tuned(cls, problem: NoisyRegression) -> "ConstantRidge":
        """The best constant for a problem, which is exactly E[σ²] (see `closed_form.constant_ridge_loss`)."""
        return cls(problem.noise.second_moment)

    def penalty(self, stats: GramStatistics, spectrum: Spectrum) -> Float[Array, ""]:
        """The constant."""
        return self.constant


class AdaptiveRidge(AbstractRidge):
    """AdaRR: σ² is estimated by RSS/(n − d).

    For n ≤ d the estimate is undefined and the weights are NaN; without noise it is zero, which is OLS.
    """

    def penalty(self, stats: GramStatistics, spectrum: Spectrum) -> Float[Array, ""]:
        """RSS/(n − d)."""
        return residual_variance(stats, spectrum)

    @classmethod
    def tuned(cls, problem: NoisyRegression) -> "AdaptiveRidge":
        """Nothing is tuned; a problem for which AdaRR is undefined is rejected."""
        require_freedom("ada-ridge", problem)
        return cls()


def residual_variance(stats: GramStatistics, spectrum: Spectrum) -> Float[Array, ""]:
    """The unbiased estimate `RSS/(n − d)` of σ², and NaN where n ≤ d leaves it undefined."""
    return per_freedom(stats, spectrum.residual(stats.yy))


def per_freedom(stats: GramStatistics, residual: Float[Array, ""]) -> Float[Array, ""]:
    """A sum of squared residuals divided by the n − d degrees of freedom, NaN where there are none."""
    freedom = (stats.num_examples - stats.dim).astype(residual.dtype)
    return jnp.where(freedom > 0, residual / jnp.maximum(freedom, 1), jnp.nan)


def require_freedom(method: str, problem: NoisyRegression) -> None:
    """Reject a problem whose residuals say nothing about σ."""
    if problem.num_examples <= problem.dim:
        raise ValueError(
            f"`{method}` estimates σ from n − d degrees of freedom and needs num_examples > dim, "
            f"got num_examples={problem.num_examples} and dim={problem.dim}."
        )
