"""What measured losses say: means with standard errors, tails, and paired differences."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, values: Float[np.ndarray, " n"]) -> "Estimate":
        """From independent values."""
        with np.errstate(invalid="ignore", over="ignore"):
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
            return cls(float(np.mean(values)), spread / len(values) ** 0.5)

    def as_adjusted_loss(self) -> dict[str, float]:
        """Under the names that tables have for an adjusted loss."""
        return {"adjusted_loss": self.mean, "standard_error": self.standard_error}


@dataclass(frozen=True)
class Tail:
    """What a mean hides: a deep model may explode on a few sequences that own it.

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
    def of(cls, values: Float[np.ndarray, " n"], worse_than_zero: float) -> "Tail":
        """From the losses of all sequences."""
        ordered = np.sort(values)
        kept = ordered[: max(len(ordered) - len(ordered) // 1000, 1)]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            share = float(ordered[-10:].sum() / ordered.sum()) if ordered[-1] > 0 else 0.0
        return cls(float(np.median(ordered)), float(kept.mean()), share, float(ordered[-1]), worse_than_zero)


@dataclass(frozen=True)
class Repeated:
    """The paper's protocol repeated: what its printed figures are compared with.

    Attributes:
        means: Adjusted loss of every repetition.
    """

    means: Float[np.ndarray, " repetitions"]

    @property
    def median(self) -> float:
        """The middle repetition."""
        return float(np.median(self.means))

    @property
    def interval(self) -> tuple[float, float]:
        """5 % and 95 % quantiles over the repetitions."""
        low, high = np.quantile(self.means, [0.05, 0.95])
        return float(low), float(high)


@dataclass(frozen=True)
class Moments:
    """Running count, sum and sum of squares, for losses that are not kept."""

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
