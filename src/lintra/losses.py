"""What measured losses say: means with standard errors, tails, and paired differences."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float


def finite(value: Any) -> Any:
    """A value for JSON, which has no word for what is not finite: there it becomes nothing.

    >>> finite({"loss": float("inf"), "by_start": [1.0, float("nan")]})
    {'loss': None, 'by_start': [1.0, None]}
    """
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
class Comparison:
    """Adjusted losses of several predictors on the same sequences.

    Attributes:
        losses: Adjusted loss of every sequence, by name.
        unadjusted: The loss before the oracle's is subtracted, by name, the oracle's own under `oracle`.
        worse_than_zero: Share of sequences on which predicting zero would have been better, by name.
        protocol: Adjusted loss of every sequence at one sampled query, by name, if asked for.
    """

    losses: dict[str, Float[np.ndarray, " n"]]
    unadjusted: dict[str, Estimate]
    worse_than_zero: dict[str, float]
    protocol: dict[str, Float[np.ndarray, " n"]]

    def adjusted(self, name: str) -> Estimate:
        """Adjusted loss of one predictor."""
        return Estimate.of(self.losses[name])

    def difference(self, name: str, other: str) -> Estimate:
        """Paired difference of adjusted losses: negative where `name` is better than `other`."""
        with np.errstate(invalid="ignore"):
            return Estimate.of(self.losses[name] - self.losses[other])

    def repeated(self, name: str, num_sequences: int = 100_000) -> "Repeated":
        """The paper's protocol, on the first `num_sequences` sequences, the next, and so on."""
        values = self.protocol[name]
        count = len(values) // num_sequences
        if not count:
            raise ValueError(f"`num_sequences` must be at most {len(values):,}, as many as were measured.")
        return Repeated(values[: count * num_sequences].reshape(count, -1).mean(axis=1))

    def tail(self, name: str) -> Tail:
        """The tail of one predictor's adjusted loss."""
        return Tail.of(self.losses[name], self.worse_than_zero[name])


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
