"""What a model needs, in words: the loss without each ω, ranked only where means or medians can be compared."""

import math
from collections.abc import Callable

from lintra.anatomy.wording import differ, estimate_of, is_above, joined, written
from lintra.display import Row
from lintra.evaluation.estimate import Estimate

_ZERO = Estimate(0.0, 0.0)


def on_ablation(ablation: list[Row], whole: Row, num_layers: int) -> list[str]:
    """Return which ω have no effect, without which the model explodes, and which of the others it needs.

    Args:
        ablation: The loss without each ω.
        whole: The loss of the model itself, on the same sequences.
        num_layers: Number of layers.

    Returns:
        The sentences. Costs are ranked where neither loss has an exploded sequence; if the model itself explodes,
        medians are ranked.
    """
    number = f"{whole['sequences']:,}"
    last = f"ω_xx and ω_xy of layer {num_layers}, the last one, never reach the output."
    idle = [row for row in ablation if row["changed"] == 0]
    active = [row for row in ablation if row["changed"] > 0]
    sentences = [last]
    if 2 * whole["exploded"] > whole["sequences"]:
        return [last, f"It explodes on more than half of {number} sequences, so that no ω is ranked."]
    if idle:
        verb = "changes" if len(idle) == 1 else "change"
        sentences.append(
            f"{_names(idle)} {verb} no prediction: without, the loss of all {number} sequences is equal."
        )
    if not active:
        return sentences
    if whole["exploded"]:
        return sentences + _by_median(active, whole)
    exploding = [row for row in active if row["exploded"]]
    if exploding:
        parts = [
            f"{_name(row)} (on {row['exploded']:,}, median loss {written(estimate_of(row, 'median'))})"
            for row in exploding
        ]
        sentences.append(f"It explodes on some of {number} sequences without {joined(parts)}.")
    return sentences + _by_cost([row for row in active if not row["exploded"]], number, bool(exploding))


def _by_cost(rows: list[Row], number: str, are_others: bool) -> list[str]:
    """Rank by the mean difference of losses on the same sequences."""
    if not rows:
        return []
    means = f"({number} sequences)"
    if len(rows) == 1:
        return [f"Without {_name(rows[0])} the loss grows by {_cost(rows[0])} {means}."]
    start = "Of the others it" if are_others else "It"
    most, least = (_extreme(rows, sign, _paired) for sign in (1, -1))
    if len(most) == len(rows):
        costs = joined([f"{_name(row)} {_cost(row)}" for row in rows])
        return [f"Costs cannot be told apart: {costs} {means}."]
    sentence = (
        f"{start} needs {_names(most)} most: without {_it(most)} the loss grows by "
        f"{joined([_cost(row) for row in most])} {means}."
    )
    better = [row for row in rows if is_above(_ZERO, _paired(row))]
    unclear = [row for row in rows if not differ(_paired(row), _ZERO)]
    if not better and not unclear:
        sentence += f" It needs {_names(least)} least: {joined([_cost(row) for row in least])}."
    if better:
        without = joined([f"{_name(row)} ({_cost(row)})" for row in better])
        sentence += f" Its loss is less without {without}, each alone."
    if unclear:
        without = joined([f"{_name(row)} ({_cost(row)})" for row in unclear])
        sentence += f" A cost cannot be told from zero for {without}."
    return [sentence]


def _by_median(rows: list[Row], whole: Row) -> list[str]:
    """Rank by the median loss, since exploded sequences of the model itself dominate all means."""
    start = (
        f"It explodes itself, so medians of {whole['sequences']:,} sequences are compared: "
        f"{written(estimate_of(whole, 'median'))} with all ω"
    )
    most, least = (_extreme(rows, sign, _median) for sign in (1, -1))
    if len(most) == len(rows):
        parts = [f"{written(_median(row))} without {_name(row)}" for row in rows]
        return [f"{start}, and {joined(parts)}, which cannot be told apart."]
    parts = [
        f"{joined([written(_median(row)) for row in group])} without {_names(group)}" for group in (most, least)
    ]
    return [f"{start}, at most {parts[0]}, and at least {parts[1]}."]


def _extreme(rows: list[Row], sign: int, value: Callable[[Row], Estimate]) -> list[Row]:
    """Return the rows that cannot be told from the largest value (sign 1), or from the least (sign −1)."""
    first = value(max(rows, key=lambda row: sign * value(row).mean))
    if not math.isfinite(first.mean):
        return [row for row in rows if value(row).mean == first.mean]
    return [row for row in rows if math.isfinite(value(row).mean) and not differ(value(row), first)]


def _paired(row: Row) -> Estimate:
    return Estimate(row["cost"], row["cost_standard_error"])


def _median(row: Row) -> Estimate:
    return Estimate(row["median"], row["median_standard_error"])


def _cost(row: Row) -> str:
    return written(_paired(row))


def _name(row: Row) -> str:
    return f"ω_{row['omega']} of layer {row['layer']}"


def _names(rows: list[Row]) -> str:
    return joined([_name(row) for row in rows])


def _it(rows: list[Row]) -> str:
    return "it" if len(rows) == 1 else "each"
