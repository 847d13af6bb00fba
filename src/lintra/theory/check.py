"""What a claim of the paper comes to: a statement, what was measured, what was predicted, and whether it holds."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lintra.display import Plot, Row

_HOLDS = {
    "=": lambda measured, predicted, tolerance: abs(measured - predicted) <= tolerance,
    "≤": lambda measured, predicted, tolerance: measured <= predicted + tolerance,
    "≥": lambda measured, predicted, tolerance: measured >= predicted - tolerance,
}


@dataclass(frozen=True)
class Check:
    """One comparison.

    Arguments:
        claim: Where the paper says so, such as `lemma-4.3`.
        statement: What it says, in our words.
        measured: A number.
        predicted: What it should be.
        tolerance: How far off it may be.
        relation: `=`, `≤` or `≥`, between what was measured and what was predicted.
        misprint: Whether this is what the paper prints and should not hold; the corrected form stands beside it.

    >>> Check("lemma-a.3", "the excess shrinks to ¾ of its square", 0.7498, 0.75, 1e-3).holds
    True
    """

    claim: str
    statement: str
    measured: float
    predicted: float
    tolerance: float
    relation: str = "="
    misprint: bool = False

    @property
    def holds(self) -> bool:
        """Whether the relation is true; never where something is not a number."""
        return bool(_HOLDS[self.relation](self.measured, self.predicted, self.tolerance))

    @property
    def expected(self) -> bool:
        """Whether it holds, or is a misprint and does not."""
        return self.holds != self.misprint

    def to_row(self) -> Row:
        """Return a row for tables and JSON."""
        names = ("claim", "statement", "measured", "relation", "predicted", "tolerance")
        return {name: getattr(self, name) for name in names} | {"holds": self.holds, "misprint": self.misprint}


@dataclass(frozen=True)
class ClaimResult:
    """The checks of one claim, and its plots."""

    checks: list[Check]
    plots: list[Plot] = field(default_factory=list)


@dataclass(frozen=True)
class LineFit:
    """A straight line through points by least squares.

    Attributes:
        value: The slope.
        standard_error: Its standard error, by the errors of the points or, where none are given, by their scatter.
    """

    value: float
    standard_error: float

    @classmethod
    def fit(cls, x: Any, y: Any, error: Any = None) -> "LineFit":
        """Fit points.

        >>> LineFit.fit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0]).value
        2.0
        """
        x, y = np.asarray(x, float), np.asarray(y, float)
        weights = np.ones_like(x) if error is None else 1 / np.asarray(error, float) ** 2
        centre = np.average(x, weights=weights)
        spread = np.sum(weights * (x - centre) ** 2)
        value = float(np.sum(weights * (x - centre) * y) / spread)
        rest = y - np.average(y, weights=weights) - value * (x - centre)
        scatter = 1.0 if error is not None else float(np.sum(rest**2) / max(len(x) - 2, 1))
        return cls(value, float(np.sqrt(scatter / spread)))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval."""
        half = 1.96 * self.standard_error
        return self.value - half, self.value + half

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4f} [{low:.4f}, {high:.4f}]"
