"""What the paper prints: Table 1, with the rounding of every figure."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

UNIFORM = tuple(f"uniform(0,{top})" for top in range(8))
CATEGORICAL = ("choice(1,3)", "choice(1,3,5)")
NOISES = UNIFORM + CATEGORICAL
"""The noise priors of Table 1, column by column."""


@dataclass(frozen=True)
class Printed:
    """A figure of Table 1, which stands for anything within `rounding` of `value`."""

    value: float
    rounding: float


@cache
def table1() -> dict[tuple[str, int | None, str], Printed]:
    """Adjusted losses by method, number of layers (none for baselines) and noise prior.

    >>> table1()["full", 7, "uniform(0,5)"]
    Printed(value=0.047, rounding=0.0005)
    """
    text = resources.files("lintra").joinpath("data/table1.csv").read_text()
    return {
        (row["method"], int(row["layers"]) if row["layers"] else None, row["noise"]): _printed(
            row["adjusted_loss"]
        )
        for row in csv.DictReader(text.splitlines())
    }


def _printed(text: str) -> Printed:
    """Read a figure; the last digit is rounded, and a bare 0 stands for less than half a thousandth."""
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2]) or 3
    return Printed(float(text), 0.5 * 10.0 ** (int(exponent or 0) - decimals))
