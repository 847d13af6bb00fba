"""Claims about what training finds, judged by the stored rows of experiments: nothing is trained here."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lintra.display import Row
from lintra.experiments import stored_rows
from lintra.theory.check import Check, ClaimResult

_ERRORS = 3  # standard errors
_SPREAD = 0.05  # of an x block; starts have more than one
_GDPP_SHARE = 0.99  # of ‖S‖², of layers that count as GD++
_GDPP_DISTANCE = 1e-3  # of predictions, relative
_BETTER_THAN_GDPP = (("diag", 3),)  # of the eight models the one that gains by ω_xy and ω_yy at two seeds
_WORSE = 1.02  # times the best excess, from where a start has ended in a worse minimum

Rows = Sequence[Row]


def equation_8(rows: Rows | None = None) -> ClaimResult:
    """Eq. (8): the entries of free diagonals become equal at every start, and averaging them loses nothing."""
    checks = []
    for (layers,), group in _groups(stored_rows("equation-8") if rows is None else rows, "layers"):
        name, count = f"free diagonals, {layers} layers", len(group)
        before, after = min(row["spread_at_start"] for row in group), max(row["spread"] for row in group)
        text = f"{name}: largest spread of an x block over {count} starts, from at least {before:.2f}"
        checks.append(Check("equation-8", text, after, _SPREAD, 0.0, "≤"))
        worst = max(group, key=lambda row: row["lost_by_averaging"] / row["lost_by_averaging_error"])
        text = f"{name}: loss by averaging the entries, the worst start in standard errors"
        lost = worst["lost_by_averaging"] / worst["lost_by_averaging_error"]
        checks.append(Check("equation-8", text, lost, 0.0, _ERRORS, "≤"))
        best = min(group, key=lambda row: row["averaged_above_published"])
        text = f"{name}: averaged, the best start above the published DIAG of {best['published_excess']:.4f}"
        error = best["averaged_above_published_error"]
        checks.append(Check("equation-8", text, best["averaged_above_published"], 0.0, _ERRORS * error))
    return ClaimResult(checks)


def equation_6(rows: Rows | None = None) -> ClaimResult:
    """§2.3 and §5.1: models trained at σ = 2 are GD++ by weights and predictions, but for small ω_xy and ω_yy."""
    checks = []
    groups = _groups(stored_rows("equation-6") if rows is None else rows, "family", "layers")
    for (family, layers), group in groups:
        best = min(group, key=lambda row: _number(row["adjusted_loss"]))
        name = f"{family}-{layers} at fixed(2), the best of {len(group)} starts"
        text = f"{name}: share of ω_xx and ω_yx in its layers"
        checks.append(Check("equation-6", text, best["gdpp_share"], _GDPP_SHARE, 0.0, "≥"))
        losses = f"loss {best['adjusted_loss']:.3g} and {best['gdpp_loss']:.3g}"
        text = f"{name}: E‖w − v‖²/E‖v‖² to the best GD++, {losses}"
        checks.append(Check("equation-6", text, best["distance_best"], _GDPP_DISTANCE, 0.0, "≤"))
        if (family, layers) in _BETTER_THAN_GDPP:
            text = f"{name}: loss below that of the best GD++, by {best['below_gdpp']:.2g}: in standard errors"
            gain = best["below_gdpp"] / best["below_gdpp_error"]
            checks.append(Check("equation-6", text, gain, _ERRORS, 0.0, "≥"))
    return ClaimResult(checks)


def section_6(rows: Rows | None = None) -> ClaimResult:
    """§6 on {1, 3}: DIAG has bad local minima, and the best of 200 starts is still far above FULL."""
    checks = []
    for (layers,), group in _groups(stored_rows("starts") if rows is None else rows, "layers"):
        best = min(group, key=lambda row: _number(row["excess"]))
        name, count = f"diag-{layers}-choice(1,3)", len(group)
        gap, error = best["above_published_diag"], best["above_published_diag_error"]
        text = f"{name}, the best of {count} starts, above the published DIAG"
        checks.append(Check("section-6", text, gap, 0.0, _ERRORS * error))
        gap, error = best["above_published_full"], best["above_published_full_error"]
        text = f"{name}, the best of {count} starts, is above the published FULL by {gap:.4f}: in standard errors"
        checks.append(Check("section-6", text, gap / error, _ERRORS, 0.0, "≥"))
        excesses = np.asarray([_number(row["excess"]) for row in group])
        reached = int(np.sum(excesses < best["published_full"]))
        checks.append(Check("section-6", f"{name}: starts that reach FULL's loss", reached, 0, 0.0))
        share = float(np.mean(excesses > _WORSE * best["excess"]))
        text = f"{name}: share of starts in a minimum more than 2 % worse than the best"
        checks.append(Check("section-6", text, share, 0.1, 0.0, "≥"))
    return ClaimResult(checks)


def _groups(rows: Rows, *columns: str) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Rows with equal values in these columns, in their order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return list(groups.items())


def _number(value: float | None) -> float:
    """A stored number, where `None` stands for infinity."""
    return float("inf") if value is None else value
