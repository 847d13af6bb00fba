"""Statements about Figures 5 and 7: predictions after each layer."""

from itertools import pairwise

from lintra.evaluation.estimate import Estimate
from lintra.evaluation.layers import SEEDED
from lintra.evaluation.measurement import Results
from lintra.evaluation.trimmed_losses import TrimmedMeans
from lintra.figures.figure7 import NOISE_STDS
from lintra.report.statements.base import (
    NUM_ERRORS,
    Decision,
    Statement,
    all_hold,
    count,
    is_above,
    is_below,
    mean_of,
    minus,
    most_hold,
    short,
)
from lintra.report.statements.needs import AFTER_EACH_LAYER, AFTER_EACH_OF_EIGHT, LABELS, seeded_names

_FAMILIES = ("gd++", "diag", "full")
_LAYERS = range(1, 9)
_HALF = 4  # number of layers that count as the first ones, of eight
_DRAMATIC = 0.25  # ratio of losses below which an improvement is dramatic
_LOW, _HIGH, _BEYOND = (0.0, 2.0), (3.0, 5.0), (5.5, 10.0)  # ranges of σ; training has σ up to 5


def error_falls_with_every_layer(results: Results) -> tuple[str, Decision]:
    """Figure 5: "Linear transformer models show a consistent decrease in error per layer"."""
    losses = results[AFTER_EACH_LAYER][SEEDED]
    parts, by_family = [], []
    for family in _FAMILIES:
        steps = {
            (name, layer): losses.difference((name, layer), (name, layer - 1))
            for depth in range(2, 8)
            for name in seeded_names(family, depth)
            for layer in range(2, depth + 1)
        }
        decisions = [is_below(step) for step in steps.values()]
        part = f"{LABELS[family]} at {count(decisions)} steps"
        name, layer = max(steps, key=lambda output: steps[output].mean)
        if is_above(steps[name, layer]):
            part += f" (most against it: {short(steps[name, layer])} in layer {layer} of {name})"
        parts.append(part)
        by_family.append(all_hold(decisions))
    return f"The loss falls from layer to layer, all depths and seeds: {'; '.join(parts)}.", all_hold(by_family)


def gdpp_goes_from_high_noise_to_low(results: Results) -> tuple[str, Decision]:
    """Appendix B: GD++'s "early iterations model higher noise, gradually converging towards lower noise"."""
    ranges = [_best_noise_stds(results, "gd++", layer) for layer in _LAYERS]
    # not rising in any step, and lower at the end than at the start
    steps = [after[0] <= before[1] for before, after in pairwise(ranges)]
    return (
        f"Noise level of the least loss after each of 8 layers: {_listed(ranges)}.",
        all_hold([*steps, _is_lower(ranges[-1], ranges[0])]),
    )


def diag_begins_like_gdpp(results: Results) -> tuple[str, Decision]:
    """Appendix B: "DIAG exhibits this pattern initially"."""
    ranges = [_best_noise_stds(results, "diag", layer) for layer in _LAYERS]
    first = ranges[:3]
    steps = [after[0] <= before[1] for before, after in pairwise(first)]
    return (
        f"Noise level of the least loss after each of 8 layers: {_listed(ranges)}.",
        all_hold([*steps, _is_lower(first[-1], first[0])]),
    )


def diag_improves_at_low_noise_last(results: Results) -> tuple[str, Decision]:
    """Appendix B: DIAG "then dramatically improves, particularly for lower noise ranges"."""
    low, high = (_by_layer(results, "diag", *bounds) for bounds in (_LOW, _HIGH))
    ratios = [_ratio(values[-1], values[_HALF - 1]) for values in (low, high)]
    limit = Estimate(ratios[0].mean - _DRAMATIC, ratios[0].standard_error)
    return (
        f"Mean over seeds after each of 8 layers, at σ ≤ 2: {_curve(low)}; at σ from 3 to 5: {_curve(high)}. "
        f"After layer 8 / after layer 4: {short(ratios[0])} and {short(ratios[1])}.",
        all_hold([is_below(minus(*ratios)), is_below(limit)]),
    )


def full_begins_with_low_noise(results: Results) -> tuple[str, Decision]:
    """Appendix B: "FULL displays the opposite trend, first improving low-noise predictions"."""
    low, high = (_by_layer(results, "full", *bounds) for bounds in (_LOW, _HIGH))
    ratios = [_ratio(values[_HALF - 1], values[0]) for values in (low, high)]
    return (
        f"Mean over seeds after each of 8 layers, at σ ≤ 2: {_curve(low)}; at σ from 3 to 5: {_curve(high)}. "
        f"After layer 4 / after layer 1: {short(ratios[0])} and {short(ratios[1])}.",
        is_below(minus(*ratios)),
    )


def full_declines_at_high_noise(results: Results) -> tuple[str, Decision]:
    """Appendix B: then follows "a decline in higher noise prediction accuracy"."""
    rises = {
        (name, noise_std): losses.difference((name, 8), (name, _HALF))
        for noise_std, losses in _points(results).items()
        if _BEYOND[0] <= noise_std <= _BEYOND[1]
        for name in seeded_names("full", 8)
    }
    decisions = [is_above(rise) for rise in rises.values()]
    listed = ", ".join(f"{short(rise)} at σ = {s:g}" for (name, s), rise in rises.items() if "seed0" in name)
    return (
        f"Loss after layer 8 minus that after layer 4, seed 0: {listed}. Above zero at {count(decisions)} seeds "
        "and noise levels.",
        most_hold(decisions),
    )


def full_declines_in_the_last_layer(results: Results) -> tuple[str, Decision]:
    """Appendix B: this decline happens "especially in the last layer"."""
    decisions, rises = [], dict.fromkeys(range(2, 9), 0)
    for noise_std, losses in _points(results).items():
        if not _BEYOND[0] <= noise_std <= _BEYOND[1]:
            continue
        for name in seeded_names("full", 8):
            steps = {layer: losses.difference((name, layer), (name, layer - 1)) for layer in rises}
            for layer, step in steps.items():
                rises[layer] += is_above(step) is True
            # the last layer raises the loss, and more than any layer of the second half before it
            before = [minus(steps[8], steps[layer]) for layer in range(_HALF + 1, 8)]
            decisions.append(all_hold([is_above(steps[8]), *map(is_above, before)]))
    listed = ", ".join(f"{number}" for number in rises.values())
    return (
        f"Seeds and noise levels from 5.5 to 10 at which the loss rises in layers 2 to 8: {listed} of "
        f"{len(decisions)}. The last layer raises it more than layers 5 to 7 at {count(decisions)}.",
        most_hold(decisions),
    )


def _points(results: Results) -> dict[float, TrimmedMeans]:
    return {NOISE_STDS[noise]: losses for noise, losses in results[AFTER_EACH_OF_EIGHT].items()}


def _over_seeds(losses: TrimmedMeans, family: str, layer: int) -> Estimate:
    return mean_of([losses.estimate(name, layer) for name in seeded_names(family, 8)])


def _by_layer(results: Results, family: str, low: float, high: float) -> list[Estimate]:
    """Return the mean loss over a range of noise levels and all seeds, after each of eight layers."""
    points = {s: losses for s, losses in _points(results).items() if low <= s <= high}
    return [mean_of([_over_seeds(losses, family, layer) for losses in points.values()]) for layer in _LAYERS]


def _best_noise_stds(results: Results, family: str, layer: int) -> tuple[float, float]:
    """Return the lowest and the highest noise level whose loss is within two standard errors of the least one."""
    curve = {s: _over_seeds(losses, family, layer) for s, losses in _points(results).items()}
    least = min(curve.values(), key=lambda estimate: estimate.mean)
    close = [s for s, e in curve.items() if (gap := minus(e, least)).mean <= NUM_ERRORS * gap.standard_error]
    return min(close), max(close)


def _is_lower(one: tuple[float, float], other: tuple[float, float]) -> Decision:
    if one[1] < other[0]:
        return True
    return False if one[0] >= other[1] else None


def _ratio(one: Estimate, other: Estimate) -> Estimate:
    """The ratio of two means, with relative errors added, which is an upper bound."""
    ratio = one.mean / other.mean
    return Estimate(ratio, ratio * (one.standard_error / one.mean + other.standard_error / other.mean))


def _listed(ranges: list[tuple[float, float]]) -> str:
    return ", ".join(f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in ranges)


def _curve(values: list[Estimate]) -> str:
    return ", ".join(map(short, values))


_NEEDS = (AFTER_EACH_OF_EIGHT,)

STATEMENTS = (
    Statement(
        "Appendix, Figure 5",
        "The error decreases consistently with every layer.",
        (AFTER_EACH_LAYER,),
        error_falls_with_every_layer,
    ),
    Statement(
        "Appendix B, Figure 7",
        "GD++, layer by layer: early layers model higher noise, later ones lower noise.",
        _NEEDS,
        gdpp_goes_from_high_noise_to_low,
    ),
    Statement(
        "Appendix B, Figure 7",
        "DIAG, layer by layer: the first layers model higher noise, then lower noise, as GD++ does.",
        _NEEDS,
        diag_begins_like_gdpp,
    ),
    Statement(
        "Appendix B, Figure 7",
        "DIAG, layer by layer: then it improves dramatically (fourfold), above all at low noise.",
        _NEEDS,
        diag_improves_at_low_noise_last,
    ),
    Statement(
        "Appendix B, Figure 7",
        "FULL, layer by layer: the opposite trend, low noise improves first (in layers 1 to 4).",
        _NEEDS,
        full_begins_with_low_noise,
    ),
    Statement(
        "Appendix B, Figure 7",
        "FULL, layer by layer: then the prediction at higher noise (beyond that of training) declines.",
        _NEEDS,
        full_declines_at_high_noise,
    ),
    Statement(
        "Appendix B, Figure 7",
        "FULL, layer by layer: this decline is above all in the last layer.",
        _NEEDS,
        full_declines_in_the_last_layer,
    ),
)
"""Statements about Figures 5 and 7."""
