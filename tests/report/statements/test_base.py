import math

import pytest

from lintra.evaluation.estimate import Estimate
from lintra.report.statements import STATEMENTS
from lintra.report.statements.base import (
    all_hold,
    at_most,
    is_above,
    is_below,
    mean_of,
    minus,
    most_hold,
    negate,
    short,
    within,
)


@pytest.mark.parametrize(
    ("mean", "error", "below"),
    [
        (-0.21, 0.1, True),
        (-0.19, 0.1, None),
        (0.19, 0.1, None),
        (0.21, 0.1, False),
        (-0.1, 0.0, True),
        (0.0, 0.0, None),
    ],
)
def test_a_difference_within_two_standard_errors_is_a_tie(mean, error, below):
    assert is_below(Estimate(mean, error)) is below
    assert is_above(Estimate(-mean, error)) is below


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_decides_nothing(value):
    assert is_below(Estimate(value, 0.1)) is None
    assert at_most(Estimate(0.0, abs(value)), 1.0) is None
    assert within(Estimate(value, 0.1), 0.25) is None


def test_a_limit_must_be_two_standard_errors_away():
    assert at_most(Estimate(0.7, 0.1), 1.0) is True
    assert at_most(Estimate(0.9, 0.1), 1.0) is None
    assert at_most(Estimate(1.3, 0.1), 1.0) is False
    assert at_most(Estimate(1.0, 0.0), 1.0) is True


def test_ratios_are_within_a_margin_on_both_sides():
    assert within(Estimate(0.79, 0.001), 0.25) is False
    assert within(Estimate(0.81, 0.001), 0.25) is True
    assert within(Estimate(1.26, 0.001), 0.25) is False


def test_one_false_decides_and_one_open_leaves_open():
    assert all_hold([True, True]) is True
    assert all_hold([True, None, False]) is False
    assert all_hold([True, None]) is None
    assert negate(None) is None
    assert negate(all_hold([False])) is True


def test_most_are_more_than_half_whatever_the_open_ones_are():
    assert most_hold([True, True, None]) is True
    assert most_hold([True, False]) is False
    assert most_hold([True, None]) is None
    assert most_hold([False, False, None]) is False


def test_errors_of_differences_and_means():
    assert minus(Estimate(1.0, 0.3), Estimate(0.5, 0.4)) == Estimate(0.5, 0.5)
    assert mean_of([Estimate(1.0, 0.1), Estimate(3.0, 0.3)]) == Estimate(2.0, 0.2)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.04012, 0.00021), "0.0401 ± 0.0002"),
        (Estimate(-12.34, 0.5), "-12.3 ± 0.5"),
        (Estimate(2.5e-12, 3e-14), "2.50e-12 ± 3e-14"),
        (Estimate(math.inf, math.nan), "inf ± nan"),
        (Estimate(1.0, 0.0), "1 ± 0"),
    ],
)
def test_numbers_are_written_with_their_errors(estimate, text):
    assert short(estimate) == text


def test_statements_have_different_texts_and_name_their_source():
    assert len({statement.text for statement in STATEMENTS}) == len(STATEMENTS)
    for statement in STATEMENTS:
        assert statement.source.startswith(("§", "Figure", "Appendix"))
        assert statement.text.endswith(".")
        assert statement.needs
        assert (statement.check.__doc__ or "").startswith(("§", "Figure", "Appendix"))
