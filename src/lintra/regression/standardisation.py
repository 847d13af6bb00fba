"""Data in standard units, centred, scaled and optionally whitened, and weights converted back."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lintra.statistics.examples import Data, Examples
from lintra.statistics.gram import GramStatistics

_ROUNDING_UNITS = 500  # units of rounding, relative to the largest value, below which a centred input is constant
_ROUNDING = 1e-13  # of the largest value, below which a centred input is constant, in 64 bits
_MIN_VARIANCE = 1e-10  # of the largest variance, below which a principal component is rounding


class Units(eqx.Module):
    """The units into which contexts were converted: means that were subtracted, and scales of division.

    Attributes:
        mean: Mean of each input, shape (b, d).
        scale: Divisor of each input, shape (b, d). It is infinite for a constant input, whose weight is zero.
        label_mean: Mean of the labels, shape (b,).
        label_scale: Divisor of the labels, shape (b,).
    """

    mean: Float[Array, "b d"]
    scale: Float[Array, "b d"]
    label_mean: Float[Array, " b"]
    label_scale: Float[Array, " b"]

    def inverse(self, weights: Float[Array, "b d"], *, intercept: bool) -> Float[Array, "b weights"]:
        """Return weights for the data as given, with the intercept as last column if `intercept` is set."""
        weights = weights / self.scale * self.label_scale[:, None]
        if not intercept:
            return weights
        constant = self.label_mean - jnp.sum(weights * self.mean, axis=-1)
        return jnp.concatenate([weights, constant[:, None]], axis=-1)


def to_units(data: Data, *, standardise: bool, centre: bool, scale_labels: bool) -> tuple[Data, Units]:
    """Convert contexts into the units of training.

    Args:
        data: Contexts. Of statistics, only inputs are scaled.
        standardise: Whether to divide inputs by their standard deviations.
        centre: Whether to centre inputs and labels.
        scale_labels: Whether to divide labels by the largest of their context. The squares in a Gram matrix then
            neither overflow nor vanish; the unit of labels itself is removed by `UnitBlind`.

    Returns:
        The contexts, and their units.
    """
    if isinstance(data, GramStatistics):
        return _statistics_to_units(data, standardise)
    x, x_mean, x_scale = _centred_columns(data.x, data.num_examples, centre, standardise)
    y, y_mean, y_scale = _centred_columns(data.y[..., None], data.num_examples, centre, scale_labels)
    if standardise:
        root = jnp.sqrt(jnp.sum(x**2, axis=1) / data.num_examples[:, None].astype(x.dtype))
        x = x / jnp.where(root > 0, root, 1)[:, None]
        x_scale = jnp.where(root > 0, root * x_scale, jnp.inf)
    units = Units(x_mean, x_scale, y_mean[:, 0], y_scale[:, 0])
    return Examples(x, y[..., 0], data.num_examples), units


def _centred_columns(
    values: Float[Array, "b n c"], num_examples: Int[Array, " b"], centre: bool, scale: bool
) -> tuple[Float[Array, "b n c"], Float[Array, "b c"], Float[Array, "b c"]]:
    """Return columns centred and divided by their largest value, their means and these values.

    Rows from `num_examples` on are padding and stay zero. A column that is constant to rounding becomes zero.
    """
    ones = jnp.ones_like(values[:, 0])
    mean, size = 0 * ones, ones
    if centre or scale:
        size = _largest(values)
        values = values / size[:, None]
    if centre:
        mean = jnp.sum(values, axis=1) / num_examples[:, None].astype(values.dtype)
        real = jnp.arange(values.shape[1])[None, :, None] < num_examples[:, None, None]
        values = jnp.where(real, values - mean[:, None], 0)
        constant = jnp.max(jnp.abs(values), axis=1) < _ROUNDING_UNITS * jnp.finfo(values.dtype).eps
        values = jnp.where(constant[:, None], 0, values)
        spread = _largest(values)
        values, mean, size = values / spread[:, None], mean * size, size * spread
    if centre and not scale:
        values, size = values * size[:, None], ones
    return values, mean, size


def _largest(values: Float[Array, "b n c"]) -> Float[Array, "b c"]:
    """Return the largest absolute value of every column, and 1 where all are zero."""
    largest = jnp.max(jnp.abs(values), axis=1)
    return jnp.where(largest == 0, 1, largest)


def _statistics_to_units(stats: GramStatistics, standardise: bool) -> tuple[GramStatistics, Units]:
    dtype, zeros = stats.gram.dtype, jnp.zeros((len(stats.num_examples), stats.dim), stats.gram.dtype)
    scale = zeros + 1
    if standardise:
        square = jnp.diagonal(stats.xx, axis1=1, axis2=2) / stats.num_examples[:, None].astype(dtype)
        scale = jnp.where(square > 0, jnp.sqrt(square), jnp.inf)
        factor = jnp.concatenate([1 / scale, jnp.ones_like(scale[:, :1])], axis=-1)
        stats = GramStatistics(stats.gram * factor[:, :, None] * factor[:, None, :], stats.num_examples)
    return stats, Units(zeros, scale, zeros[:, 0], zeros[:, 0] + 1)


@dataclass(frozen=True)
class Standardisation:
    """One context in standard units, and how it was converted.

    No intermediate value overflows or vanishes, however large or small the data is.

    Attributes:
        gram: Gram matrices in standard units, one for each target, shape (k, d+1, d+1).
        num_examples: Sum of the examples' weights.
        mean: Mean of each input, shape (d,).
        scale: Standard deviation of each input, shape (d,). It is infinite for a constant input, whose weight is
            zero.
        whitening: Matrix from standard units to principal components of variance one, shape (d, d). `None`: inputs
            are not whitened.
        label_mean: Mean of each target, shape (k,).
        label_scale: Largest centred label of each target, shape (k,).
    """

    gram: Float[np.ndarray, "k e e"]
    num_examples: float
    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    whitening: Float[np.ndarray, "d d"] | None
    label_mean: Float[np.ndarray, " k"]
    label_scale: Float[np.ndarray, " k"]

    @classmethod
    def fit(
        cls,
        x: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, "n k"],
        weight: Float[np.ndarray, " n"],
        centred: bool,
        whitened: bool,
    ) -> "Standardisation":
        """Standardise one context.

        Args:
            x: Inputs, shape (n, d).
            y: Labels, one column for each target, shape (n, k).
            weight: Number of times that each example counts, shape (n,).
            centred: Whether to centre inputs and labels.
            whitened: Whether to whiten inputs.
        """
        share = weight / weight.sum()
        x, mean, size = _centred(x, share, centred)
        y, label_mean, label_scale = _centred(y, share, centred)
        root = np.sqrt(share @ x**2)
        x = np.divide(x, root, out=np.zeros_like(x), where=root > 0)
        scale = np.where(root > 0, root * size, np.inf)
        whitening = _whitening(x, share) if whitened else None
        x = x if whitening is None else x @ whitening
        return cls(_gram(x, y, weight), float(weight.sum()), mean, scale, whitening, label_mean, label_scale)

    def statistics(self) -> GramStatistics:
        """Return the Gram matrices for a whole number of examples with the same averages."""
        num_examples = max(round(self.num_examples), 1)
        return GramStatistics(
            jnp.asarray(self.gram * (num_examples / self.num_examples)),
            jnp.full(len(self.gram), num_examples, dtype=int),
        )

    def inverse(self, weights: Float[np.ndarray, "*layers k d"]) -> Float[np.ndarray, "*layers k d"]:
        """Return weights for the data as given."""
        if self.whitening is not None:
            weights = weights @ self.whitening.T
        return weights / self.scale * self.label_scale[:, None]

    def intercept(self, coefficients: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
        """Return the intercept that belongs to coefficients for the data as given."""
        return self.label_mean - coefficients @ self.mean


def _centred(
    values: Float[np.ndarray, "n c"], share: Float[np.ndarray, " n"], centred: bool
) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
    """Return values divided by their largest, their means, and the divisors. A constant column becomes zero."""
    values = values[share > 0]
    size = _size(values)
    values = values / size
    mean = share[share > 0] @ values if centred else np.zeros(values.shape[1])
    values = values - mean
    values[:, np.abs(values).max(axis=0) < _ROUNDING] = 0.0
    spread = _size(values)
    # Examples of weight zero stay zero.
    all_values = np.zeros((len(share), values.shape[1]))
    all_values[share > 0] = values / spread
    return all_values, mean * size, size * spread


def _size(values: Float[np.ndarray, "n c"]) -> Float[np.ndarray, " c"]:
    """Return the largest absolute value of each column, and 1 where all are zero."""
    largest = np.abs(values).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def _gram(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n k"], weight: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "k e e"]:
    """Return the Gram matrix of the tokens (x, y) for each target. The block of inputs is computed once."""
    root, dim = np.sqrt(weight)[:, None], x.shape[1]
    x, y = x * root, y * root
    gram = np.empty((y.shape[1], dim + 1, dim + 1))
    gram[:, :dim, :dim] = x.T @ x
    gram[:, :dim, dim] = gram[:, dim, :dim] = y.T @ x
    gram[:, dim, dim] = np.sum(y**2, axis=0)
    return gram


def _whitening(x: Float[np.ndarray, "n d"], share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "d d"]:
    """Return V D^(−1/2) for the covariance V D Vᵀ of the inputs, without components of variance zero."""
    root = x * np.sqrt(share)[:, None]
    values, vectors = np.linalg.eigh(root.T @ root)
    positive = values > _MIN_VARIANCE * max(values[-1], 1e-300)
    return vectors * np.where(positive, 1 / np.sqrt(np.where(positive, values, 1.0)), 0.0)
