"""Other people's data in standard units: centred, scaled, optionally whitened, and weights brought back."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lintra.statistics.examples import Data, Examples
from lintra.statistics.gram import GramStatistics

_ROUNDING_UNITS = 500  # units of rounding, relative to the largest value, below which a centred input is constant


_ROUNDING = 1e-13  # of its size, below which the spread of an input is rounding
_SEEN = 1e-10  # of the largest variance, below which a principal component is rounding


class Units(eqx.Module):
    """The units into which contexts were brought.

    Attributes:
        mean: Of every input, shape (b, d).
        scale: What every input was divided by, shape (b, d); infinite for a constant input, whose weight is zero.
        label_mean: Mean of the labels, shape (b,).
        label_scale: What labels were divided by, shape (b,).
    """

    mean: Float[Array, "b d"]
    scale: Float[Array, "b d"]
    label_mean: Float[Array, " b"]
    label_scale: Float[Array, " b"]

    def back(self, weights: Float[Array, "b d"], *, intercept: bool) -> Float[Array, "b weights"]:
        """Return weights for the data as it came, with the intercept as last column if `intercept` is set."""
        weights = weights / self.scale * self.label_scale[:, None]
        if not intercept:
            return weights
        constant = self.label_mean - jnp.sum(weights * self.mean, axis=-1)
        return jnp.concatenate([weights, constant[:, None]], axis=-1)


def to_units(data: Data, *, standardise: bool, centre: bool, scale_labels: bool) -> tuple[Data, Units]:
    """Bring contexts into the units of training.

    Args:
        data: Contexts. Of statistics, only inputs are scaled.
        standardise: Whether to divide inputs by their standard deviations.
        centre: Whether to centre inputs and labels.
        scale_labels: Whether to divide labels by the largest of their context, so that no square is lost.

    Returns:
        The contexts, and their units.
    """
    if isinstance(data, GramStatistics):
        return _statistics_to_units(data, standardise)
    x, x_mean, x_scale = _centred_columns(data.x, data.count, centre, standardise)
    y, y_mean, y_scale = _centred_columns(data.y[..., None], data.count, centre, scale_labels)
    if standardise:
        root = jnp.sqrt(jnp.sum(x**2, axis=1) / data.count[:, None].astype(x.dtype))
        x = x / jnp.where(root > 0, root, 1)[:, None]
        x_scale = jnp.where(root > 0, root * x_scale, jnp.inf)
    units = Units(x_mean, x_scale, y_mean[:, 0], y_scale[:, 0])
    return Examples(x, y[..., 0], data.count), units


def _centred_columns(
    values: Float[Array, "b n c"], count: Int[Array, " b"], centre: bool, scale: bool
) -> tuple[Float[Array, "b n c"], Float[Array, "b c"], Float[Array, "b c"]]:
    """Return columns centred and divided by their largest value, their means and these values.

    Rows from `count` on are padding and stay zero. A column that is constant to rounding becomes zero.
    """
    ones = jnp.ones_like(values[:, 0])
    mean, size = 0 * ones, ones
    if centre or scale:
        size = _largest(values)
        values = values / size[:, None]
    if centre:
        mean = jnp.sum(values, axis=1) / count[:, None].astype(values.dtype)
        real = jnp.arange(values.shape[1])[None, :, None] < count[:, None, None]
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
    dtype, zeros = stats.gram.dtype, jnp.zeros((len(stats.count), stats.dim), stats.gram.dtype)
    scale = zeros + 1
    if standardise:
        square = jnp.diagonal(stats.xx, axis1=1, axis2=2) / stats.count[:, None].astype(dtype)
        scale = jnp.where(square > 0, jnp.sqrt(square), jnp.inf)
        factor = jnp.concatenate([1 / scale, jnp.ones_like(scale[:, :1])], axis=-1)
        stats = GramStatistics(stats.gram * factor[:, :, None] * factor[:, None, :], stats.count)
    return stats, Units(zeros, scale, zeros[:, 0], zeros[:, 0] + 1)


@dataclass(frozen=True)
class Frame:
    """How inputs and labels were brought into standard units.

    Nothing overflows or vanishes on the way, however large or small the data is.

    Attributes:
        gram: Gram matrices in standard units, one a target.
        count: How many examples they are, weights included.
        mean: Of every input.
        scale: Of every input: its standard deviation, and infinite for a constant one, whose weight is zero.
        turn: From standard units to principal components of variance one, if inputs are whitened.
        label_mean: Of every target.
        label_scale: Of every target: its largest label, centred.
    """

    gram: Float[np.ndarray, "k e e"]
    count: float
    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    turn: Float[np.ndarray, "d d"] | None
    label_mean: Float[np.ndarray, " k"]
    label_scale: Float[np.ndarray, " k"]

    @classmethod
    def of(
        cls,
        x: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, "n k"],
        weight: Float[np.ndarray, " n"],
        centred: bool,
        whitened: bool,
    ) -> "Frame":
        """The frame of one context."""
        share = weight / weight.sum()
        x, mean, size = _centred(x, share, centred)
        y, label_mean, label_scale = _centred(y, share, centred)
        std = np.sqrt(share @ x**2)
        x = np.divide(x, std, out=np.zeros_like(x), where=std > 0)
        scale = np.where(std > 0, std * size, np.inf)
        turn = _whitening(x, share) if whitened else None
        x = x if turn is None else x @ turn
        return cls(_gram(x, y, weight), float(weight.sum()), mean, scale, turn, label_mean, label_scale)

    def statistics(self) -> GramStatistics:
        """What the model reads: a whole number of examples, of the same averages."""
        count = max(round(self.count), 1)
        return GramStatistics(
            jnp.asarray(self.gram * (count / self.count)), jnp.full(len(self.gram), count, dtype=int)
        )

    def back(self, weights: Float[np.ndarray, "*layers k d"]) -> Float[np.ndarray, "*layers k d"]:
        """Weights for the data as it came."""
        if self.turn is not None:
            weights = weights @ self.turn.T
        return weights / self.scale * self.label_scale[:, None]

    def intercept(self, coefficients: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
        """The constant that goes with coefficients for the data as it came."""
        return self.label_mean - coefficients @ self.mean


def _centred(
    values: Float[np.ndarray, "n c"], share: Float[np.ndarray, " n"], centred: bool
) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
    """Values of size one, their mean before, and their size; a column that does not vary becomes zero."""
    values = values[share > 0]
    size = _size(values)
    values = values / size
    mean = share[share > 0] @ values if centred else np.zeros(values.shape[1])
    values = values - mean
    values[:, np.abs(values).max(axis=0) < _ROUNDING] = 0.0
    spread = _size(values)
    whole = np.zeros((len(share), values.shape[1]))
    whole[share > 0] = values / spread
    return whole, mean * size, size * spread


def _size(values: Float[np.ndarray, "n c"]) -> Float[np.ndarray, " c"]:
    largest = np.abs(values).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def _gram(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n k"], weight: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "k e e"]:
    """Gram matrices of tokens (x, y), one a target; inputs are multiplied once for all."""
    root, dim = np.sqrt(weight)[:, None], x.shape[1]
    x, y = x * root, y * root
    gram = np.empty((y.shape[1], dim + 1, dim + 1))
    gram[:, :dim, :dim] = x.T @ x
    gram[:, :dim, dim] = gram[:, dim, :dim] = y.T @ x
    gram[:, dim, dim] = np.sum(y**2, axis=0)
    return gram


def _whitening(x: Float[np.ndarray, "n d"], share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "d d"]:
    root = x * np.sqrt(share)[:, None]
    values, vectors = np.linalg.eigh(root.T @ root)
    seen = values > _SEEN * max(values[-1], 1e-300)
    return vectors * np.where(seen, 1 / np.sqrt(np.where(seen, values, 1.0)), 0.0)
