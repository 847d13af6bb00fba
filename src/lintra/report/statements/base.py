"""A statement of the paper, its verdict, and how verdicts follow from estimates with standard errors."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lintra.evaluation.estimate import Estimate
from lintra.evaluation.measurement import AbstractMeasurement, Results
from lintra.zoo.collection import UnknownModelError

Decision = bool | None
"""Yes, no, or `None` where the standard errors leave it open."""

NUM_ERRORS = 2.0
"""Number of standard errors within which a difference is a tie."""


@dataclass(frozen=True)
class StatementResult:
    """A statement of the paper and what was measured.

    Attributes:
        statement: In the paper's sense.
        measured: In numbers, with standard errors.
        holds: Whether it does; `None` where it was not measured or the numbers do not decide it.
        source: Section or figure of the paper.
    """

    statement: str
    measured: str
    holds: Decision
    source: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement of the paper.

    Attributes:
        source: Section or figure of the paper.
        text: In the paper's sense, with the margin within which two losses count as equal.
        needs: What is measured for it.
        check: From the results to a sentence with numbers, and whether the statement holds.
    """

    source: str
    text: str
    needs: tuple[AbstractMeasurement[Any], ...]
    check: Callable[[Results], tuple[str, Decision]]


def check_statement(statement: Statement, results: Results) -> StatementResult:
    """Compare a statement with the results of its needs.

    Args:
        statement: The statement.
        results: Results of its needs, at least.

    Returns:
        The verdict. It is `None` where models are missing, and where differences are within two standard errors.
    """
    try:
        measured, holds = statement.check(results)
    except UnknownModelError as error:
        reason = str(error)
        measured = f"Not measured, since {reason[:1].lower()}{reason[1:]}"
        return StatementResult(statement.text, measured, None, statement.source)
    if holds is None:
        measured = f"Not decided within {NUM_ERRORS:g} standard errors. {measured}"
    return StatementResult(statement.text, measured, None if holds is None else bool(holds), statement.source)


def is_below(difference: Estimate) -> Decision:
    """Decide whether a difference is negative; `None` where it is within two standard errors, or not finite.

    >>> is_below(Estimate(-0.3, 0.1)), is_below(Estimate(0.3, 0.1)), is_below(Estimate(0.1, 0.1))
    (True, False, None)
    """
    return None if difference.mean == 0 else at_most(difference, 0.0)


def is_above(difference: Estimate) -> Decision:
    """Decide whether a difference is positive; `None` where it is within two standard errors, or not finite."""
    return is_below(Estimate(-difference.mean, difference.standard_error))


def at_most(value: Estimate, limit: float) -> Decision:
    """Decide whether a value is at most a limit; `None` where the limit is less than two standard errors away."""
    if not (math.isfinite(value.mean) and math.isfinite(value.standard_error)):
        return None
    gap, margin = limit - value.mean, NUM_ERRORS * value.standard_error
    if gap >= margin:
        return True
    return False if gap < -margin else None


def within(ratio: Estimate, margin: float) -> Decision:
    """Decide whether a ratio of losses is between `1 / (1 + margin)` and `1 + margin`.

    >>> within(Estimate(1.1, 0.01), 0.25), within(Estimate(0.5, 0.01), 0.25), within(Estimate(1.24, 0.01), 0.25)
    (True, False, None)
    """
    low = at_most(Estimate(-ratio.mean, ratio.standard_error), -1 / (1 + margin))
    return all_hold([at_most(ratio, 1 + margin), low])


def all_hold(decisions: Iterable[Decision]) -> Decision:
    """Decide whether all are true: one that is false decides, and one that is open leaves the rest open."""
    decided = list(decisions)
    if any(decision is False for decision in decided):
        return False
    return None if any(decision is None for decision in decided) else True


def most_hold(decisions: Iterable[Decision]) -> Decision:
    """Decide whether more than half are true, whatever those that are open may be.

    >>> most_hold([True, True, False]), most_hold([True, None, False]), most_hold([False, False, None])
    (True, None, False)
    """
    decided = list(decisions)
    if 2 * sum(decision is True for decision in decided) > len(decided):
        return True
    return False if 2 * sum(decision is not False for decision in decided) <= len(decided) else None


def negate(decision: Decision) -> Decision:
    """The opposite of a decision."""
    return None if decision is None else not decision


def count(decisions: Sequence[Decision]) -> str:
    """Count in words how many are true, and how many are open.

    >>> count([True, False, None]), count([True, True])
    ('1 of 3 (1 not decided)', '2 of 2')
    """
    open_ones = sum(decision is None for decision in decisions)
    words = f"{sum(decision is True for decision in decisions)} of {len(decisions)}"
    return f"{words} ({open_ones} not decided)" if open_ones else words


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates that were measured on the same sequences.

    Their correlation is not known here. Its error is at most the mean of their errors, which is given.
    """
    size = len(estimates)
    return Estimate(sum(e.mean for e in estimates) / size, sum(e.standard_error for e in estimates) / size)


def minus(one: Estimate, other: Estimate) -> Estimate:
    """The difference of estimates from different sequences, or from positively correlated ones."""
    return Estimate(one.mean - other.mean, math.hypot(one.standard_error, other.standard_error))


def short(value: Estimate) -> str:
    """Write an estimate with as many digits as its error has a use for.

    >>> short(Estimate(0.040123, 0.00021)), short(Estimate(0.0, 0.0)), short(Estimate(6.2e18, 8.1e18))
    ('0.0401 ± 0.0002', '0 ± 0', '6e+18 ± 8e+18')
    """
    if not math.isfinite(value.mean) or not math.isfinite(value.standard_error):
        return f"{value.mean:.0e} ± {value.standard_error:.0e}"
    if value.standard_error < 1e-15 * abs(value.mean) or value.standard_error == 0:
        return f"{value.mean:.3g} ± 0"  # rounding is no error
    if value.mean == 0:
        return f"0 ± {value.standard_error:.0g}"
    if value.standard_error < 1e-6 * abs(value.mean):
        return f"{value.mean:.7g} ± {value.standard_error:.0e}"
    digits = -math.floor(math.log10(value.standard_error))
    if not 0 <= digits <= 6:
        return f"{value.mean:.{max(min(3, _leading(value)), 0)}e} ± {value.standard_error:.0e}"
    return f"{value.mean:.{digits}f} ± {value.standard_error:.{digits}f}"


def percent(share: float) -> str:
    """Write a share in percent.

    >>> percent(0.25), percent(0.015)
    ('25 %', '1.5 %')
    """
    return f"{100 * share:g} %"


def _leading(value: Estimate) -> int:
    """Number of digits after the first one that are larger than the error."""
    if value.mean == 0:
        return 0
    return math.floor(math.log10(abs(value.mean))) - math.floor(math.log10(value.standard_error))
