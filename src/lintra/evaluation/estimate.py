"""Summaries of measured losses: mean, median and median of means with errors, tail, the paper's protocol."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

DOMINATING_SHARE = 0.1
"""Share of a sum above which the few sequences that have it dominate the mean: it is a tenth less without them."""
_NEGLIGIBLE = 1e-20  # a loss that is zero but for rounding
_NUM_PARTS = 10  # of the sequences, for a median of means: as many as the protocol's repetitions in a million


@dataclass(frozen=True)
class Estimate:
    """A mean, or another statistic, and its standard error.

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

    @classmethod
    def median(cls, values: Float[np.ndarray, " n"]) -> "Estimate":
        """Median of independent values, which may be infinite.

        Its error is half the distance of the values that are √n/2 ranks below and above it.

        >>> Estimate.median(np.array([1.0, 2.0, 3.0, 4.0, np.inf])).mean
        3.0
        """
        ordered, count = np.sort(values), len(values)
        ranks = count / 2 + np.array([-0.5, 0.5]) * count**0.5
        low, high = ordered[np.clip(ranks.astype(int), 0, count - 1)]
        with np.errstate(invalid="ignore"):
            return cls(float(np.median(ordered)), float((high - low) / 2))

    @classmethod
    def median_of_means(cls, values: Float[np.ndarray, " n"]) -> "Estimate":
        """Median of the means of ten parts of the values.

        It estimates the mean, and few values, which are in less than half of the parts, do not dominate it.

        >>> Estimate.median_of_means(np.array([2.0, 1e9] + [2.0] * 98)).mean
        2.0
        """
        parts = np.array_split(values, min(_NUM_PARTS, len(values)))
        with np.errstate(over="ignore"):
            return cls.median(np.asarray([part.mean() for part in parts]))

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

    @property
    def is_dominated(self) -> bool:
        """Whether few sequences dominate the mean: the ten largest have more than a tenth of the sum."""
        return self.worst > _NEGLIGIBLE and is_dominating(self.top_ten_share)

    @classmethod
    def from_values(cls, values: Float[np.ndarray, " n"], worse_than_zero: float) -> "Tail":
        """From the losses of all sequences."""
        ordered = np.sort(values)
        trimmed = ordered[: max(len(ordered) - len(ordered) // 1000, 1)]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            share = float(ordered[-10:].sum() / ordered.sum()) if ordered[-1] > 0 else 0.0
        return cls(float(np.median(ordered)), float(trimmed.mean()), share, float(ordered[-1]), worse_than_zero)


def is_dominating(share: float) -> bool:
    """Whether sequences with this share of a sum dominate the mean. NaN, of an infinite loss, does.

    >>> is_dominating(0.02), is_dominating(0.5), is_dominating(float("nan"))
    (False, True, True)
    """
    return not share <= DOMINATING_SHARE


def share_of_largest(losses: Float[np.ndarray, "*batch n"], num_largest: int = 10) -> float:
    """Return the share of the largest losses in the sum of all.

    Args:
        losses: Losses, none of them negative. Of several sets the largest share is returned.
        num_largest: Number of the largest losses of a set. Default: 10.

    Returns:
        The share, 0 where losses are zero but for rounding and NaN where one of them is infinite.

    >>> share_of_largest(np.array([1.0] * 90 + [9.0] * 10))
    0.5
    """
    if losses.max() <= _NEGLIGIBLE:
        return 0.0
    largest = np.sort(losses, axis=-1)[..., -num_largest:]
    with np.errstate(invalid="ignore", divide="ignore"):
        # A sum may overflow although no loss does: a share is the same in any unit.
        scale = losses.max(axis=-1, keepdims=True)
        shares = (largest / scale).sum(axis=-1) / (losses / scale).sum(axis=-1)
    return float(np.max(shares))  # NaN if one of them is


@dataclass(frozen=True)
class ProtocolQuantiles:
    """The paper's protocol, repeated: what its printed numbers are compared with.

    Attributes:
        median: Median of the adjusted loss over repetitions.
        low: 5 % quantile.
        high: 95 % quantile.
        top_share: Share of the ten largest of 100,000 sequences in the sum of adjusted losses of a repetition, the
            largest over repetitions. NaN where a loss is infinite. Default: 0.
    """

    median: float
    low: float
    high: float
    top_share: float = 0.0

    @property
    def is_dominated(self) -> bool:
        """Whether few sequences set the range: ten have more than a tenth of the sum of a repetition."""
        return is_dominating(self.top_share)

    @property
    def half_width(self) -> float:
        """Half the width of the 5–95 % range."""
        return (self.high - self.low) / 2

    @classmethod
    def from_means(
        cls, means: Float[np.ndarray, " repetitions"], *, top_share: float = 0.0
    ) -> "ProtocolQuantiles":
        """From the adjusted loss of every repetition.

        >>> ProtocolQuantiles.from_means(np.arange(101.0))
        ProtocolQuantiles(median=50.0, low=5.0, high=95.0, top_share=0.0)
        """
        with np.errstate(invalid="ignore"):
            quantiles = np.quantile(means, [0.5, 0.05, 0.95])
        # Between two infinite values a quantile is NaN.
        median, low, high = np.where(np.isnan(quantiles), np.inf, quantiles)
        return cls(float(median), float(low), float(high), top_share)

    @classmethod
    def from_losses(
        cls, losses: Float[np.ndarray, " n"], *, num_sequences: int, top_share: float = 0.0
    ) -> "ProtocolQuantiles":
        """By the normal law, for repetitions of `num_sequences` sequences, from the losses of n sequences.

        The spread has the error of a repetition and the error of the mean of the given losses. It is infinite
        where a loss is.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            middle = float(losses.mean())
            spread = 1.645 * float(losses.std()) * (1 / num_sequences + 1 / len(losses)) ** 0.5
        if not np.isfinite(spread):
            return cls(middle, -np.inf, np.inf, top_share)
        return cls(middle, middle - spread, middle + spread, top_share)


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
