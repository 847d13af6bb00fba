"""Numbers of tables in words: means with their errors, lists, and whether two means differ."""

import math
from collections.abc import Sequence

from lintra.display import Row, plus_minus
from lintra.evaluation.estimate import Estimate

NUM_ERRORS = 4.0
"""Standard errors from which on means differ: an explanation makes up to a hundred comparisons."""
_ROUNDING = 1e-9  # relative, below which means are equal


def estimate_of(row: Row, column: str) -> Estimate | None:
    """Return a number of a row with its standard error, or `None` if it is not defined."""
    if row[column] is None:
        return None
    error = f"{column}_standard_error"
    return Estimate(row[column], row[error if error in row else "standard_error"])


def is_above(one: Estimate | None, other: Estimate | None) -> bool:
    """Whether a mean is above another by more than their errors. False if one is not defined or not finite."""
    if one is None or other is None:
        return False
    error = NUM_ERRORS * math.hypot(one.standard_error, other.standard_error)
    rounding = _ROUNDING * max(abs(one.mean), abs(other.mean))
    return one.mean - other.mean > max(error, rounding)  # False for NaN


def differ(one: Estimate | None, other: Estimate | None) -> bool:
    """Whether two means differ by more than their errors."""
    return is_above(one, other) or is_above(other, one)


def is_finite(estimate: Estimate | None) -> bool:
    """Whether a mean and its error are defined and finite."""
    return estimate is not None and math.isfinite(estimate.mean) and math.isfinite(estimate.standard_error)


def size_of(estimate: Estimate) -> Estimate:
    """Return the absolute value of a mean."""
    return Estimate(abs(estimate.mean), estimate.standard_error)


def ratio(one: Estimate, other: Estimate) -> Estimate:
    """Return the ratio of two means, the lower one not zero, with its error to first order."""
    value = one.mean / other.mean
    error = math.hypot(one.standard_error, value * other.standard_error) / abs(other.mean)
    return Estimate(value, error)


def written(estimate: Estimate | None) -> str:
    """Write a mean with its error."""
    return "not defined" if estimate is None else plus_minus(estimate.mean, estimate.standard_error)


def joined(texts: Sequence[str]) -> str:
    """Join texts by commas, and the last one by `and`.

    >>> joined(["1", "2", "3"])
    '1, 2 and 3'
    """
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def layers_of(numbers: Sequence[int]) -> str:
    """Name layers.

    >>> layers_of([1]), layers_of([1, 3])
    ('layer 1', 'layers 1 and 3')
    """
    return f"layer{'s' * (len(numbers) > 1)} {joined([str(number) for number in numbers])}"


def capitalised(text: str) -> str:
    """Begin a sentence."""
    return text[:1].upper() + text[1:]
