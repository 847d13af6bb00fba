"""Perturbations of drawn sequences, with the importance of each one."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import Truth

PROPOSAL_SCALE = 1.1
"""Scale of inputs at which sequences that are rare in the problem are frequent."""

Perturbed = tuple[GramStatistics, Float[Array, " b"] | None]
"""Statistics, and the logarithm of the importance of each sequence; `None` stands for zeros."""


class AbstractPerturbation(eqx.Module):
    """A change of sequences drawn from a problem.

    The importance of a sequence is the ratio ρ of the problem's density to the density of the perturbed sequences,
    so that means weighted by ρ are means of the problem.

    Attributes:
        keeps_prior: Whether the true weights and noise levels are still draws from the problem's prior. If not,
            only the Bayes predictor's weights are meaningful targets.
    """

    keeps_prior: ClassVar[bool] = True

    def split(self, key: Key[Array, ""]) -> tuple[Key[Array, ""], Key[Array, ""], Key[Array, ""]]:
        """Keys for the sequences, for queries and for the perturbation."""
        data_key, query_key = jax.random.split(key)
        return data_key, query_key, query_key

    @abc.abstractmethod
    def __call__(
        self, problem: NoisyRegression, stats: GramStatistics, truth: Truth, key: Key[Array, ""]
    ) -> Perturbed:
        """Perturb sequences."""


class Unperturbed(AbstractPerturbation):
    """Sequences as they are drawn."""

    def __call__(
        self, problem: NoisyRegression, stats: GramStatistics, truth: Truth, key: Key[Array, ""]
    ) -> Perturbed:
        """The same sequences."""
        return stats, None


UNPERTURBED = Unperturbed()


class ScaledInputs(AbstractPerturbation):
    """All inputs multiplied by a factor. The problem's inputs must have Λ = I.

    Args:
        scale: The factor.
    """

    scale: float | Float[Array, ""]

    def split(self, key: Key[Array, ""]) -> tuple[Key[Array, ""], Key[Array, ""], Key[Array, ""]]:
        """The key itself for the sequences."""
        return key, jax.random.fold_in(key, 1), key

    def __call__(
        self, problem: NoisyRegression, stats: GramStatistics, truth: Truth, key: Key[Array, ""]
    ) -> Perturbed:
        """Scale the inputs; with G = Σ x xᵀ before, `log ρ = n d log s − ½ (s² − 1) tr G`."""
        _require_isotropic(problem)
        scale, ones = self.scale, jnp.ones((stats.gram.shape[0], 1))
        trace = jnp.trace(stats.xx, axis1=-2, axis2=-1)
        log_importance = problem.num_examples * problem.dim * jnp.log(scale) - 0.5 * (scale**2 - 1) * trace
        stats = transform_sequences(stats, truth, scale * jnp.eye(problem.dim)[None], ones, ones)
        return stats, log_importance


class HalfScaledInputs(AbstractPerturbation):
    """The inputs of every second sequence multiplied by a factor. The problem's inputs must have Λ = I.

    The importance is the ratio of the problem's density to that of the mixture, which is at most two. Sequences
    that are too rare for a pool of the problem's own are in this one.

    Args:
        scale: The factor.
    """

    scale: float = eqx.field(static=True, default=PROPOSAL_SCALE)

    def __call__(
        self, problem: NoisyRegression, stats: GramStatistics, truth: Truth, key: Key[Array, ""]
    ) -> Perturbed:
        """Scale half of the inputs; `ρ = 2 / (1 + r)` with the density ratio r of scaled to plain sequences."""
        _require_isotropic(problem)
        num_sequences = stats.gram.shape[0]
        scales = jnp.where(jnp.arange(num_sequences) % 2 == 0, 1.0, self.scale)[:, None, None]
        ones = jnp.ones((num_sequences, 1))
        stats = transform_sequences(stats, truth, scales * jnp.eye(problem.dim), ones, ones)
        trace = jnp.trace(stats.xx, axis1=-2, axis2=-1)
        # log r = ½ (1 − s⁻²) tr G − n d log s, with G = Σ x xᵀ after scaling.
        log_ratio = 0.5 * (1 - self.scale**-2) * trace - problem.num_examples * problem.dim * jnp.log(self.scale)
        return stats, jnp.log(2.0) - jnp.logaddexp(0.0, log_ratio)


class Widened(AbstractPerturbation):
    """Sequences that are wider than the problem's, at random.

    Models that learn from a few of them do not diverge on the rarest of the problem's own sequences. The
    importance is not computed, since the sequences are additional ones.

    Args:
        scale: Inputs are up to this fraction longer. Default: 0.15.
        stretch: Inputs are up to this fraction longer in one random direction. Default: 0.5.
        weight_scale: Weights are up to this fraction larger. Default: 1.
        noise_scale: The noise is up to this fraction larger. Default: 0.5.
    """

    keeps_prior: ClassVar[bool] = False
    scale: float = eqx.field(static=True, default=0.15)
    stretch: float = eqx.field(static=True, default=0.5)
    weight_scale: float = eqx.field(static=True, default=1.0)
    noise_scale: float = eqx.field(static=True, default=0.5)

    def split(self, key: Key[Array, ""]) -> tuple[Key[Array, ""], Key[Array, ""], Key[Array, ""]]:
        """The first of six keys for the sequences; the perturbation uses the others."""
        return jax.random.split(key, 6)[0], jax.random.fold_in(key, 1), key

    def __call__(
        self, problem: NoisyRegression, stats: GramStatistics, truth: Truth, key: Key[Array, ""]
    ) -> Perturbed:
        """Map inputs by `(1 + a) (I + b u uᵀ)` with a random direction u, and multiply weights and noise."""
        num_sequences, (_, *keys) = stats.gram.shape[0], jax.random.split(key, 6)
        longer, stretch, weights, noise = (
            jax.random.uniform(key, (num_sequences, 1), maxval=largest)
            for key, largest in zip(
                keys[:4], (self.scale, self.stretch, self.weight_scale, self.noise_scale), strict=True
            )
        )
        u = jax.random.normal(keys[4], (num_sequences, problem.dim))
        u = u / jnp.linalg.norm(u, axis=-1, keepdims=True)
        inputs = (1 + longer[..., None]) * (
            jnp.eye(problem.dim) + stretch[..., None] * u[:, :, None] * u[:, None, :]
        )
        return transform_sequences(stats, truth, inputs, 1 + weights, 1 + noise), None


def _require_isotropic(problem: NoisyRegression) -> None:
    if not problem.is_isotropic:
        raise ValueError(
            "`problem` must have `covariance=None` where inputs are scaled: their density is for Λ = I."
        )


def transform_sequences(
    stats: GramStatistics, truth: Truth, inputs: Float[Array, "#b d d"], weights: Array, noise: Array
) -> GramStatistics:
    """Statistics of the same sequences with inputs `A x`, A symmetric, and weights and noise times factors."""
    explained = jnp.einsum("bij,bj->bi", stats.xx, truth.weights)
    with_noise = stats.xy - explained  # Xᵀξ
    noise_square = stats.yy - jnp.sum(truth.weights * (stats.xy + with_noise), axis=-1)  # ξᵀξ
    xx = inputs @ stats.xx @ inputs
    with_noise = noise * jnp.einsum("bij,bj->bi", inputs, with_noise)
    explained = jnp.einsum("bij,bj->bi", xx, weights * truth.weights)
    xy = explained + with_noise
    yy = jnp.sum(weights * truth.weights * (explained + 2 * with_noise), axis=-1) + noise[:, 0] ** 2 * noise_square
    top = jnp.concatenate([xx, xy[..., None]], axis=-1)
    bottom = jnp.concatenate([xy, yy[:, None]], axis=-1)[:, None, :]
    return GramStatistics(jnp.concatenate([top, bottom], axis=-2), stats.num_examples)
