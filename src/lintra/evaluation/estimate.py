"""Summaries of measured losses: mean with standard error, tail, quantiles of the paper's protocol."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error.

    >>> str(Estimate(0.0401234, 0.00021))
    '0.04012 ± 0.00021'
    """

    mean: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.standard_error:.2g}"

    @classmethod
    def from_values(cls, values: Float[np.ndarray, " n"]) -> "Estimate":
        """From independent values."""
        with np.errstate(invalid="ignore", over="ignore"):
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
            return cls(float(np.mean(values)), spread / len(values) ** 0.5)

    def as_adjusted_loss(self) -> dict[str, float]:
        """Under the names that tables have for an adjusted loss."""
        return {"adjusted_loss": self.mean, "standard_error": self.standard_error}


@dataclass(frozen=True)
class Tail:
    """The tail of a loss. A deep model may diverge on a few sequences, which then dominate the mean.

    Attributes:
        median: The loss of the middle sequence.
        trimmed_mean: Mean without the largest thousandth (all of them, where there are fewer than a thousand).
        top_ten_share: Share of the ten largest sequences in the sum, NaN where one of them is infinite.
        worst: The largest loss.
        worse_than_zero: Share of sequences on which predicting zero would have been better.
    """

    median: float
    trimmed_mean: float
    top_ten_share: float
    worst: float
    worse_than_zero: float

    @classmethod
    def from_values(cls, values: Float[np.ndarray, " n"], worse_than_zero: float) -> "Tail":
        """From the losses of all sequences."""
        ordered = np.sort(values)
        trimmed = ordered[: max(len(ordered) - len(ordered) // 1000, 1)]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            share = float(ordered[-10:].sum() / ordered.sum()) if ordered[-1] > 0 else 0.0
        return cls(float(np.median(ordered)), float(trimmed.mean()), share, float(ordered[-1]), worse_than_zero)


@dataclass(frozen=True)
class ProtocolQuantiles:
    """The paper's protocol, repeated: what its printed numbers are compared with.

    Attributes:
        median: Median of the adjusted loss over repetitions.
        low: 5 % quantile.
        high: 95 % quantile.
    """

    median: float
    low: float
    high: float

    @classmethod
    def from_means(cls, means: Float[np.ndarray, " repetitions"]) -> "ProtocolQuantiles":
        """From the adjusted loss of every repetition.

        >>> ProtocolQuantiles.from_means(np.arange(101.0))
        ProtocolQuantiles(median=50.0, low=5.0, high=95.0)
        """
        low, high = np.quantile(means, [0.05, 0.95])
        return cls(float(np.median(means)), float(low), float(high))

    @classmethod
    def from_losses(cls, losses: Float[np.ndarray, " n"], *, num_sequences: int) -> "ProtocolQuantiles":
        """By the normal law, for repetitions of `num_sequences` sequences, from the losses of n sequences.

        The spread has the error of a repetition and the error of the mean of the given losses.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            middle = float(losses.mean())
            spread = 1.645 * float(losses.std()) * (1 / num_sequences + 1 / len(losses)) ** 0.5
        return cls(middle, middle - spread, middle + spread)


@dataclass(frozen=True)
class Moments:
    """Running count, sum and sum of squares, for losses that are not stored."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, values: Float[np.ndarray, " n"]) -> "Moments":
        """Take in more values."""
        with np.errstate(invalid="ignore", over="ignore"):
            return Moments(
                self.count + len(values),
                self.total + float(values.sum()),
                self.squares + float((values**2).sum()),
            )

    def estimate(self) -> Estimate:
        """Their mean and its standard error."""
        with np.errstate(invalid="ignore", over="ignore"):
            mean = np.float64(self.total) / self.count
            variance = np.maximum(np.float64(self.squares) / self.count - mean**2, 0.0)
            return Estimate(float(mean), float(np.sqrt(variance / max(self.count - 1, 1))))
