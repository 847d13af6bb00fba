"""Statements about Figure 3: noise levels from a set."""

from itertools import pairwise

from lintra.evaluation.estimate import Estimate
from lintra.evaluation.measurement import Results
from lintra.problem.noise import parse_noise
from lintra.report.statements.base import (
    Decision,
    Statement,
    all_hold,
    at_most,
    count,
    is_above,
    is_below,
    minus,
    most_hold,
    negate,
    percent,
    short,
)
from lintra.report.statements.needs import COLUMNS, COMPARABLE, LABELS, PROFILES, column, model_name, profile

_TWO, _THREE = "choice(1,3)", "choice(1,3,5)"
_DEPTHS = range(3, 8)  # with one and two layers the families are the same
_NEAR = 0.3  # distance in σ from a noise level of training within which a noise level is not unseen
_TOP = 6.0  # largest noise level of Figure 3


def families_differ(results: Results) -> tuple[str, Decision]:
    """§6: "a notable difference between DIAG and FULL models for categorical noise variance στ ∈ {1, 3}"."""
    losses = column(results, _TWO)
    ratios = [losses.ratio(model_name("full", d, _TWO), model_name("diag", d, _TWO)) for d in _DEPTHS]
    decisions = [at_most(ratio, 1 - COMPARABLE) for ratio in ratios]
    return (
        f"FULL / DIAG with 3 to 7 layers: {', '.join(map(short, ratios))}; at least {percent(COMPARABLE)} lower "
        f"at {count(decisions)} depths.",
        most_hold(decisions),
    )


def full_is_better_in_distribution(results: Results) -> tuple[str, Decision]:
    """§6: FULL has a "lower in-distribution error" at {1, 3}."""
    losses = column(results, _TWO)
    differences = [losses.difference(model_name("full", d, _TWO), model_name("diag", d, _TWO)) for d in _DEPTHS]
    decisions = [is_below(difference) for difference in differences]
    return (
        f"FULL − DIAG with 3 to 7 layers: {', '.join(map(short, differences))}; below zero at {count(decisions)} "
        "depths.",
        all_hold(decisions),
    )


def diag_extrapolates_better(results: Results) -> tuple[str, Decision]:
    """§6: "DIAG extrapolates better for variances not used for training, while FULL performs worse"."""
    trained = parse_noise(_TWO).support()
    points = profile(results, _TWO, high=_TOP)
    parts, by_depth = [], []
    for depth in (4, 7):  # Figure 3 shows 7 layers at the top
        differences = {
            noise_std: losses.difference(model_name("diag", depth, _TWO), model_name("full", depth, _TWO))
            for noise_std, losses in points.items()
            if min(abs(noise_std - value) for value in trained) > _NEAR
        }
        decisions = [is_below(difference) for difference in differences.values()]
        low, high = ([e for s, e in differences.items() if (s < trained[1]) is inside] for inside in (True, False))
        parts.append(
            f"with {depth} layers at {count(decisions)} (below σ = 3 at {count([is_below(e) for e in low])}, "
            f"above it at {count([is_below(e) for e in high])})"
        )
        by_depth.append(most_hold(decisions))
    worst = points[_TOP].estimate(model_name("diag", 7, _TWO))
    return (
        f"Noise levels from 0 to 6 not used for training at which DIAG has the smaller loss: {'; '.join(parts)}. "
        f"At σ = 6, DIAG-7 has {short(worst)} and FULL-7 "
        f"{short(points[_TOP].estimate(model_name('full', 7, _TWO)))}.",
        by_depth[-1],
    )


def full_fluctuates_more(results: Results) -> tuple[str, Decision]:
    """§6: at {1, 3, 5} "FULL exhibits a more complex per-variance profile with more fluctuations"."""
    swings = {family: _total_variation(results, model_name(family, 7, _THREE)) for family in ("full", "diag")}
    listed = ", ".join(f"{LABELS[family]} {short(swing)}" for family, swing in swings.items())
    return (
        f"Total variation of the profile with 7 layers from σ = 1 to 5: {listed}.",
        is_above(minus(swings["full"], swings["diag"])),
    )


def fluctuations_do_not_pay(results: Results) -> tuple[str, Decision]:
    """§6: FULL's greater capacity at {1, 3, 5} "did not translate to better loss results compared to DIAG"."""
    losses = column(results, _THREE)
    ratios = [losses.ratio(model_name("full", d, _THREE), model_name("diag", d, _THREE)) for d in _DEPTHS]
    decisions = [at_most(ratio, 1.0) for ratio in ratios]
    return (
        f"FULL / DIAG with 3 to 7 layers: {', '.join(map(short, ratios))}; FULL is better at {count(decisions)} "
        "depths.",
        negate(most_hold(decisions)),
    )


def _total_variation(results: Results, name: str) -> Estimate:
    """`Σ |L(σ_{i+1}) − L(σ_i)|` from σ = 1 to 5.

    It is a sum `Σ c_j L(σ_j)` with c_j in {0, ±1, ±2}, whose error is at most `Σ |c_j|` times the errors.
    """
    curve = [m.estimate(name) for s, m in profile(results, _THREE).items() if 1 <= s <= 5]
    signs = [1 if after.mean > before.mean else -1 for before, after in pairwise(curve)]
    factors = [before - after for before, after in zip([0, *signs], [*signs, 0], strict=True)]
    total = sum(factor * estimate.mean for factor, estimate in zip(factors, curve, strict=True))
    error = sum(abs(factor) * estimate.standard_error for factor, estimate in zip(factors, curve, strict=True))
    return Estimate(total, error)


STATEMENTS = (
    Statement(
        "§6, Figure 3",
        f"Trained on {{1, 3}}, DIAG and FULL differ notably (by {percent(COMPARABLE)} at the "
        "majority of depths from 3 on).",
        (COLUMNS[_TWO],),
        families_differ,
    ),
    Statement(
        "§6, Figure 3",
        "Trained on {1, 3}, FULL has the lower error in distribution.",
        (COLUMNS[_TWO],),
        full_is_better_in_distribution,
    ),
    Statement(
        "§6, Figure 3",
        "Trained on {1, 3}, DIAG extrapolates better than FULL to noise levels not used for training.",
        (PROFILES[_TWO],),
        diag_extrapolates_better,
    ),
    Statement(
        "§6, Figure 3",
        "Trained on {1, 3, 5}, FULL fluctuates more than DIAG.",
        (PROFILES[_THREE],),
        full_fluctuates_more,
    ),
    Statement(
        "§6, Figure 3",
        "Trained on {1, 3, 5}, this did not translate to a better loss of FULL.",
        (COLUMNS[_THREE],),
        fluctuations_do_not_pay,
    ),
)
"""Statements about Figure 3."""
