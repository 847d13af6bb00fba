"""Table 1 as printed, its noise priors, and the verdict on a measured loss."""

import csv
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from lintra.evaluation.estimate import ProtocolQuantiles

UNIFORM = tuple(f"uniform(0,{top})" for top in range(8))
CATEGORICAL = ("choice(1,3)", "choice(1,3,5)")
NOISES = UNIFORM + CATEGORICAL
"""The noise priors of Table 1, column by column."""


@dataclass(frozen=True)
class PrintedLoss:
    """A number of Table 1, which stands for anything within `rounding` of `value`."""

    value: float
    rounding: float


class Verdict(StrEnum):
    """How a measured loss compares with a printed one.

    The rule is the same for all cells. The paper's protocol, a mean over 100,000 sequences, is repeated.

    Attributes:
        DOMINATED: Few sequences set the range of the repetitions: in at least one of them the ten largest
            sequences have more than a tenth of the sum. No other verdict is given then.
        BELOW: The 5–95 % range of the repetitions ends below what the printed number may stand for.
        LEVEL: The range meets it.
        ABOVE: The range begins above it.
    """

    BELOW = "below"
    LEVEL = "level"
    ABOVE = "above"
    DOMINATED = "dominated"


def verdict(measured: ProtocolQuantiles, printed: PrintedLoss) -> Verdict:
    """Compare a loss with a printed number, which is a mean over 100,000 sequences with one sampled query each.

    Args:
        measured: Quantiles of that protocol, repeated.
        printed: The printed number.

    Returns:
        The verdict; see `Verdict` for the rule.

    >>> print(verdict(ProtocolQuantiles(0.040, 0.039, 0.041), PrintedLoss(0.047, 0.0005)))
    below
    >>> print(verdict(ProtocolQuantiles(0.040, 0.039, 52.0, top_share=0.99), PrintedLoss(0.047, 0.0005)))
    dominated
    """
    if measured.is_dominated:
        return Verdict.DOMINATED
    if measured.high < printed.value - printed.rounding:
        return Verdict.BELOW
    return Verdict.LEVEL if measured.low <= printed.value + printed.rounding else Verdict.ABOVE


def level_width(measured: ProtocolQuantiles, printed: PrintedLoss) -> float:
    """Return how far apart two losses can be and still be level.

    Args:
        measured: Quantiles of the protocol, repeated.
        printed: The printed number.

    Returns:
        Half the width of the 5–95 % range plus the rounding of the printed number.
    """
    return measured.half_width + printed.rounding


@cache
def printed_table1() -> dict[tuple[str, int | None, str], PrintedLoss]:
    """Adjusted losses by method, number of layers (`None` for baselines) and noise prior.

    >>> printed_table1()["full", 7, "uniform(0,5)"]
    PrintedLoss(value=0.047, rounding=0.0005)
    """
    text = resources.files("lintra").joinpath("data/table1.csv").read_text()
    return {
        (row["method"], int(row["layers"]) if row["layers"] else None, row["noise"]): _printed(
            row["adjusted_loss"]
        )
        for row in csv.DictReader(text.splitlines())
    }


def _printed(text: str) -> PrintedLoss:
    """Read a number; the last digit is rounded, and a bare 0 stands for less than half a thousandth."""
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2]) or 3
    return PrintedLoss(float(text), 0.5 * 10.0 ** (int(exponent or 0) - decimals))
