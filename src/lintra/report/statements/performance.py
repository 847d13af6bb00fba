"""Statements about how good linear transformers are on the whole: against baselines, and the Bayes floor."""

from lintra.evaluation.measurement import Results
from lintra.report.statements.base import (
    Decision,
    Statement,
    all_hold,
    at_most,
    count,
    is_below,
    most_hold,
    negate,
    percent,
    short,
)
from lintra.report.statements.needs import COLUMNS, DEEP, LABELS, MIXED, RIDGE, column, model_name, one_head_name

_CLOSE_TO_FLOOR = 0.1  # relative excess over the Bayes predictor's loss that counts as very accurate
_HEADS_MARGIN = 0.1  # relative gain that counts as significant in practice


def transformers_outperform_ridge(results: Results) -> tuple[str, Decision]:
    """§1: an algorithm "that outperforms GD++ as well as various baselines derived from" ridge regression."""
    decisions, behind = [], []
    for noise in MIXED:
        losses = column(results, noise)
        for family in ("diag", "full"):
            for other in (model_name("gd++", 7, noise), *RIDGE):
                difference = losses.difference(model_name(family, 7, noise), other)
                decisions.append(is_below(difference))
                if decisions[-1] is not True:
                    label = LABELS.get(other, "GD++")
                    behind.append(f"{LABELS[family]} − {label} at {noise} = {short(difference)}")
    listed = f" Not below: {'; '.join(behind)}." if behind else ""
    return (
        "With 7 layers at nine priors, DIAG and FULL are below GD++, ConstRR, AdaRR and TunedRR in "
        f"{count(decisions)} comparisons.{listed}",
        all_hold(decisions),
    )


def full_is_very_accurate(results: Results) -> tuple[str, Decision]:
    """§5: linear transformers "are able to very accurately solve linear regression with mixed noise variance"."""
    ratios = {noise: column(results, noise).ratio(model_name("full", 7, noise), "bayes") for noise in MIXED}
    decisions = [at_most(ratio, 1 + _CLOSE_TO_FLOOR) for ratio in ratios.values()]
    listed = ", ".join(f"{noise} {short(ratio)}" for noise, ratio in ratios.items())
    return (
        f"FULL with 7 layers / Bayes floor: {listed}. At most {percent(_CLOSE_TO_FLOOR)} above it at "
        f"{count(decisions)} priors.",
        most_hold(decisions),
    )


def heads_do_not_matter(results: Results) -> tuple[str, Decision]:
    """§5: "having many heads does not significantly increase its representation power"."""
    decisions, parts = [], []
    for noise in DEEP:
        losses = column(results, noise)
        gains = []
        for depth in range(2, 8):
            ratio = losses.ratio(model_name("diag", depth, noise, num_heads=2), one_head_name(depth, noise))
            gains.append(short(ratio))
            # a loss with two heads of at least 90 % of that with one head
            decisions.append(negate(at_most(ratio, 1 - _HEADS_MARGIN)))
        parts.append(f"{noise} {', '.join(gains)}")
    return (
        f"DIAG with two heads / with one head, 2 to 7 layers: {'; '.join(parts)}. The gain is below "
        f"{percent(_HEADS_MARGIN)} in {count(decisions)}.",
        all_hold(decisions),
    )


def baselines_are_a_bound(results: Results) -> tuple[str, Decision]:
    """§6: the baselines "gauge the best possible performance, establishing an upper bound"."""
    decisions, parts = [], []
    for noise in MIXED:
        losses = column(results, noise)
        best = min(RIDGE, key=lambda name: losses.estimate(name).mean)
        difference = losses.difference(model_name("full", 7, noise), best)
        decisions.append(negate(is_below(difference)))
        parts.append(f"{noise} {short(difference)} (Bayes {short(losses.difference('bayes', best))})")
    return (
        f"FULL with 7 layers minus the best baseline: {'; '.join(parts)}. Not below it at {count(decisions)}.",
        all_hold(decisions),
    )


_MIXED_NEEDS = tuple(COLUMNS[noise] for noise in MIXED)

STATEMENTS = (
    Statement(
        "§1, §7",
        "Linear transformers outperform GD++ and the baselines derived from ridge regression, also with diagonal "
        "weights.",
        _MIXED_NEEDS,
        transformers_outperform_ridge,
    ),
    Statement(
        "§5",
        f"They solve regression with mixed noise very accurately (to {percent(_CLOSE_TO_FLOOR)} of the Bayes "
        "floor at the majority of priors).",
        _MIXED_NEEDS,
        full_is_very_accurate,
    ),
    Statement(
        "§5",
        f"Many heads do not significantly increase the power of DIAG (gain below {percent(_HEADS_MARGIN)}).",
        tuple(COLUMNS[noise] for noise in DEEP),
        heads_do_not_matter,
    ),
    Statement(
        "§6",
        "The ridge baselines gauge the best possible performance: an upper bound.",
        _MIXED_NEEDS,
        baselines_are_a_bound,
    ),
)
"""Statements about performance on the whole."""
