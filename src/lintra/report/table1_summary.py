"""What the cells of Table 1 say together, in sentences."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from lintra.evaluation.paper import PrintedLoss, Verdict, level_width, printed_table1
from lintra.evaluation.table1_column import Table1Column, Table1Row
from lintra.figures.style import STYLES
from lintra.models.families import PAPER_FAMILIES

LABELS = {method: style.label for method, style in STYLES.items()}
"""Names of families and baselines as they are shown."""
DOMINATED_MEAN = "†"
"""Mark of a mean that few sequences dominate."""


def model_rows(columns: Sequence[Table1Column]) -> list[Table1Row]:
    """Return the cells of models, without baselines."""
    return [row for column in columns for row in column.rows if row.num_layers is not None]


def printed_loss(row: Table1Row) -> PrintedLoss | None:
    """Return what the paper prints for a cell, with its rounding."""
    return None if row.paper is None else printed_table1().get((row.method, row.num_layers, row.noise))


def is_below_floor(row: Table1Row) -> bool:
    """Whether the paper prints less for a cell of GD++ than the least loss that GD++ can have."""
    printed = printed_loss(row)
    return row.method == "gd++" and printed is not None and printed.value + printed.rounding < row.gdpp_floor


def is_floor_within_error(row: Table1Row) -> bool:
    """Whether a printed loss below the floor can be the sampling error of the paper's evaluation at the floor."""
    printed = printed_loss(row)
    return printed is not None and row.gdpp_floor - printed.value <= level_width(row.protocol, printed)


def summarise(columns: Sequence[Table1Column]) -> list[str]:
    """Return in sentences how many cells have which verdict, and what the verdicts rest on."""
    rows = [row for row in model_rows(columns) if row.paper is not None]
    counts = Counter(row.verdict for row in rows)
    sentences = [
        f"Of {len(rows)} model cells {counts[Verdict.BELOW]} are below the printed loss, {counts[Verdict.LEVEL]} "
        f"level with it, {counts[Verdict.ABOVE]} above it and {counts[Verdict.DOMINATED]} dominated by few "
        "sequences.",
        _level_sentence(rows),
        _family_sentence(columns),
        _explosion_sentence(model_rows(columns)),
        _ordering_sentence(columns),
        _floor_sentence(rows),
    ]
    return [sentence for sentence in sentences if sentence]


def _level_sentence(rows: Sequence[Table1Row]) -> str:
    """Return how wide "level" is, over the cells that are not dominated."""
    widths = [
        level_width(row.protocol, printed) / printed.value
        for row in rows
        if (printed := printed_loss(row)) and printed.value and row.verdict != Verdict.DOMINATED
    ]
    if not widths:
        return ""
    low, middle, high = np.quantile(widths, [0.05, 0.5, 0.95])
    return (
        "Level is as wide as the paper's own sampling error and rounding: half the 5–95 % range plus the "
        f"rounding is {middle:.1%} of the printed loss in the median cell, and {low:.1%} to {high:.1%} in nine "
        "cells of ten. Smaller differences are not seen."
    )


def _family_sentence(columns: Sequence[Table1Column]) -> str:
    """Return how many cells hold a model of a smaller family."""
    parts = []
    for family in reversed(PAPER_FAMILIES[1:]):
        held = [row.selected_family for row in model_rows(columns) if row.method == family]
        smaller = Counter(name for name in held if name not in (None, family))
        listed = " and ".join(f"{count} of {LABELS[name]}" for name, count in smaller.most_common() if name)
        parts.append(f"{smaller.total()} of {len(held)} {LABELS[family]} cells" + (f" ({listed})" * bool(listed)))
    return (
        f"Judged by their weights, {' and '.join(parts)} hold a model of a smaller family, which model selection "
        "preferred."
    )


def _explosion_sentence(rows: Sequence[Table1Row]) -> str:
    """Return how many models exploded, and how many are known to be safe."""
    exploded = sum(row.num_exploded > 0 for row in rows)
    marked = sum(row.tail.is_dominated for row in rows)
    judged = [row.printed_safe for row in rows if row.printed_safe is not None]
    safety = (
        f"Of {len(judged)} models whose cards say so, {sum(judged)} are safe as printed."
        if judged
        else "No card says whether its model is safe as printed, so no cell is in bold."
    )
    return (
        f"As printed, {exploded} of {len(rows)} models explode on at least one of the sequences of their column, "
        f"and few sequences dominate the mean of {marked} ({DOMINATED_MEAN}). {safety}"
    )


def _ordering_sentence(columns: Sequence[Table1Column]) -> str:
    """Return how many orderings hold, and how many pairs are one model."""
    pairs = [ordering for column in columns for ordering in column.orderings]
    different = [ordering for ordering in pairs if not ordering.is_same_model]
    held = sum(ordering.holds for ordering in different)
    dominated = sum(ordering.is_dominated for ordering in different)
    return (
        f"{held} of {len(different)} orderings hold: a larger family is not worse than a smaller one, nor a "
        "deeper model than a shallower one, by more than two standard errors. "
        f"{len(pairs) - len(different)} further pairs hold the same model. In {dominated} of the "
        f"{len(different)} few sequences dominate the difference, and its standard error says little."
    )


def _floor_sentence(rows: Sequence[Table1Row]) -> str:
    """Return how often the paper prints less than GD++ can reach."""
    below = [row for row in rows if is_below_floor(row)]
    if not below:
        return ""
    return (
        f"In {len(below)} cells of GD++ the paper prints less than the exact floor of GD++; in "
        f"{sum(map(is_floor_within_error, below))} of these by no more than its own sampling error and rounding. "
        f"{sum(row.verdict == Verdict.ABOVE for row in below)} of the {len(below)} are among the cells above the "
        "paper."
    )
