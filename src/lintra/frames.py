"""Other people's data in standard units: centred, scaled, optionally whitened, and weights brought back."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lintra.statistics import GramStatistics

_ROUNDING = 1e-13  # of its size, below which the spread of an input is rounding
_SEEN = 1e-10  # of the largest variance, below which a principal component is rounding


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
