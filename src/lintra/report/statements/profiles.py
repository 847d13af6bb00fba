"""Statements about Figures 2 and 6: the loss at each noise level, for uniform noise."""

from itertools import pairwise

from lintra.evaluation import closed_form
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.measurement import Results
from lintra.evaluation.paper import UNIFORM
from lintra.models.families import PAPER_FAMILIES
from lintra.problem.noisy_regression import NoisyRegression
from lintra.report.statements.base import (
    Decision,
    Statement,
    all_hold,
    at_most,
    count,
    is_above,
    is_below,
    mean_of,
    minus,
    percent,
    short,
    within,
)
from lintra.report.statements.needs import (
    COMPARABLE,
    EQUAL,
    LABELS,
    PROFILES,
    model_name,
    profile,
)

_NOISY = UNIFORM[1:]
_MIDDLE = "uniform(0,5)"
_SUBSTANTIAL = 0.2  # relative rise of a loss from its minimum that counts as modelling one noise level
_VISIBLE = 0.05  # share of a figure's height from which on curves are told apart


def gdpp_profile_is_constrr(results: Results) -> tuple[str, Decision]:
    """§6: GD++'s "performance closely mirrors to CONSTRR", over noise levels from 0 to σ_max + 1."""
    decisions, furthest = [], (0.0, "")
    for top, noise in enumerate(_NOISY, 1):
        points = profile(results, noise, high=top + 1)
        # relative to ConstRR's mean loss, since its loss is close to zero at the noise level that it assumes
        scale = sum(losses.estimate("const-ridge").mean for losses in points.values()) / len(points)
        for noise_std, losses in points.items():
            difference = losses.difference(model_name("gd++", 7, noise), "const-ridge")
            distance = Estimate(abs(difference.mean) / scale, difference.standard_error / scale)
            decisions.append(at_most(distance, EQUAL))
            furthest = max(furthest, (distance.mean, f"{distance} at σ_max = {top}, σ = {noise_std:.3g}"))
    return (
        f"|GD++ − ConstRR| / mean of ConstRR over σ is at most {percent(EQUAL)} at {count(decisions)} noise "
        f"levels (7 layers, σ_max = 1 … 7); the largest is {furthest[1]}.",
        all_hold(decisions),
    )


def gdpp_fails_across_the_range(results: Results) -> tuple[str, Decision]:
    """§6: the "poor performance of GD++ comes from its inability to estimate well across the full" range."""
    decisions, parts = [], []
    for top, noise in enumerate(_NOISY, 1):
        points = profile(results, noise)
        gdpp, diag = model_name("gd++", 7, noise), model_name("diag", 7, noise)
        best = min(points, key=lambda noise_std: points[noise_std].estimate(gdpp).mean)
        ends = [points[noise_std].difference(gdpp, diag) for noise_std in (min(points), max(points))]
        middle = points[best].difference(gdpp, diag)
        decisions += [*map(is_above, ends), is_below(middle)]
        if top in (1, 5, 7):
            parts.append(
                f"σ_max = {top}: {short(ends[0])} at σ = 0, {short(middle)} at σ = {best:.3g}, {short(ends[1])} "
                "at σ_max"
            )
    return (
        f"GD++ − DIAG with 7 layers: {'; '.join(parts)}. Above DIAG at both ends and below it where GD++ is best: "
        f"{count(decisions)} for σ_max = 1 … 7.",
        all_hold(decisions),
    )


def adarr_is_perfect_without_noise(results: Results) -> tuple[str, Decision]:
    """§6: "ADARR perfectly estimates problems with no noise, but struggles more as noise variance increases"."""
    decisions, parts = [], []
    for top, noise in enumerate(_NOISY, 1):
        points = profile(results, noise)
        curve = {noise_std: losses.estimate("ada-ridge") for noise_std, losses in points.items()}
        values = list(curve.values())
        decisions.append(at_most(values[0], 1e-9 * values[-1].mean))
        decisions += [is_above(minus(after, before)) for before, after in pairwise(values[::4])]
        if top in (1, 4, 7):
            listed = ", ".join(
                f"{short(curve[noise_std])} at σ = {noise_std:.3g}" for noise_std in list(curve)[::8]
            )
            parts.append(f"σ_max = {top}: {listed}")
    return (
        f"Loss of AdaRR: {'; '.join(parts)}. Zero at σ = 0 and rising with every fourth level up to σ_max: "
        f"{count(decisions)}.",
        all_hold(decisions),
    )


def tunedrr_suffers_in_the_middle(results: Results) -> tuple[str, Decision]:
    """§6: TunedRR's "prediction suffers in the mid-range"."""
    decisions, parts = [], []
    for top, noise in enumerate(_NOISY, 1):
        gaps: tuple[list[Estimate], ...] = ([], [], [])
        for noise_std, losses in profile(results, noise).items():
            gap = losses.difference("tuned-ridge", model_name("full", 7, noise))
            gaps[min(int(3 * noise_std / top), 2)].append(gap)
        low, middle, high = map(mean_of, gaps)
        decisions += [is_above(middle), is_above(minus(middle, low)), is_above(minus(middle, high))]
        parts.append(f"{top}: {short(low)}, {short(middle)}, {short(high)}")
    return (
        "TunedRR − FULL with 7 layers, mean over the lower, middle and upper third of [0, σ_max]: "
        f"{'; '.join(parts)}. Above zero in the middle, and above both other thirds: {count(decisions)}.",
        all_hold(decisions),
    )


def profiles_are_comparable(results: Results) -> tuple[str, Decision]:
    """§6: "FULL and DIAG demonstrate comparable performance across all noise variances"."""
    decisions, parts = [], []
    for top, noise in enumerate(_NOISY, 1):
        points = profile(results, noise)
        full, diag = model_name("full", 7, noise), model_name("diag", 7, noise)
        decisions += [within(losses.ratio(full, diag), COMPARABLE) for losses in points.values()]
        if top in (1, 5, 7):
            ends = [points[noise_std].ratio(full, diag) for noise_std in (min(points), max(points))]
            parts.append(f"σ_max = {top}: {short(ends[0])} at σ = 0, {short(ends[1])} at σ_max")
    return (
        f"FULL / DIAG with 7 layers is within {percent(COMPARABLE)} of 1 at {count(decisions)} noise levels up to "
        f"σ_max. {'; '.join(parts)}.",
        all_hold(decisions),
    )


def two_layers_model_one_noise_level(results: Results) -> tuple[str, Decision]:
    """§6: "Two-layer models for FULL and DIAG behave akin to GD++, modeling only a single noise variance"."""
    points = profile(results, _MIDDLE)
    parts, decisions = [], []
    for family in PAPER_FAMILIES:
        name = model_name(family, 2, _MIDDLE)
        curve = {noise_std: losses.estimate(name) for noise_std, losses in points.items()}
        best = min(curve, key=lambda noise_std: curve[noise_std].mean)
        ends = [curve[min(curve)], curve[max(curve)]]
        least = curve[best]
        rise = Estimate((1 + _SUBSTANTIAL) * least.mean, (1 + _SUBSTANTIAL) * least.standard_error)
        decisions += [is_below(minus(rise, end)) for end in ends]
        parts.append(f"{LABELS[family]} {short(ends[0])}, {short(least)} at σ = {best:.3g}, {short(ends[1])}")
    return (
        f"Loss of two layers at σ = 0, at its minimum and at σ = 5: {'; '.join(parts)}. Both ends at least "
        f"{percent(_SUBSTANTIAL)} above the minimum: {count(decisions)}.",
        all_hold(decisions),
    )


def three_layers_improve_everywhere(results: Results) -> tuple[str, Decision]:
    """§6: "the results quickly improve across the entire noise spectrum for 3 or more layers"."""
    parts, decisions = [], []
    for family in ("diag", "full"):
        for depth in range(3, 8):
            differences = {
                noise_std: losses.difference(model_name(family, depth, _MIDDLE), model_name(family, 2, _MIDDLE))
                for noise_std, losses in profile(results, _MIDDLE).items()
            }
            of_depth = [is_below(difference) for difference in differences.values()]
            worst = max(differences, key=lambda noise_std: differences[noise_std].mean)
            parts.append(
                f"{LABELS[family]}-{depth} at {count(of_depth)}, at worst {short(differences[worst])} at σ = "
                f"{worst:.3g}"
            )
            decisions += of_depth
    return (
        f"Noise levels up to 5 at which the loss is below that of 2 layers: {'; '.join(parts)}; in all "
        f"{count(decisions)}.",
        all_hold(decisions),
    )


def noise_degrades_predictions(results: Results) -> tuple[str, Decision]:
    """§6: "higher noise significantly degrades the model prediction"."""
    # unadjusted loss = adjusted loss + the oracle's, which is known exactly
    name = model_name("full", 7, _MIDDLE)
    curve = {
        noise_std: Estimate(losses.estimate(name).mean + _oracle(noise_std), losses.estimate(name).standard_error)
        for noise_std, losses in list(profile(results, _MIDDLE).items())[::4]
    }
    decisions = [is_above(minus(after, before)) for before, after in pairwise(curve.values())]
    listed = ", ".join(f"{short(value)} at σ = {noise_std:g}" for noise_std, value in curve.items())
    return f"Unadjusted loss of FULL with 7 layers: {listed}; rising in {count(decisions)}.", all_hold(decisions)


def unadjusted_losses_hide_differences(results: Results) -> tuple[str, Decision]:
    """Appendix B: in Figure 6 it is "virtually impossible to compare the methods across various noise levels"."""
    points = profile(results, _MIDDLE)
    methods = (model_name("diag", 7, _MIDDLE), model_name("full", 7, _MIDDLE), "ada-ridge", "tuned-ridge")
    # the oracle's loss is known exactly; the figure's height is the unadjusted loss at the last noise level
    top = _oracle(max(points)) + points[max(points)].estimate("ada-ridge").mean
    spreads = {}
    for noise_std, losses in points.items():
        ordered = sorted(methods, key=lambda name: losses.estimate(name).mean)
        spread = losses.difference(ordered[-1], ordered[0])
        spreads[noise_std] = Estimate(spread.mean / top, spread.standard_error / top)
    worst = max(spreads, key=lambda noise_std: spreads[noise_std].mean)
    decisions = [at_most(spread, _VISIBLE) for spread in spreads.values()]
    return (
        f"The unadjusted loss goes from {_oracle(min(points)):.3g} to {top:.3g}. DIAG, FULL (7 layers), AdaRR and "
        f"TunedRR lie within {percent(_VISIBLE)} of this height at {count(decisions)} noise levels; they are "
        f"furthest apart at σ = {worst:.3g}, by {short(spreads[worst])} of it.",
        all_hold(decisions),
    )


def _oracle(noise_std: float) -> float:
    """The oracle's loss at a noise level, exactly."""
    return closed_form.oracle_loss(NoisyRegression(noise=f"fixed({noise_std:.6g})"))


_ALL = tuple(PROFILES[noise] for noise in _NOISY)
_ONE = (PROFILES[_MIDDLE],)

STATEMENTS = (
    Statement(
        "§6, Figure 2",
        "GD++ is poor since it does not estimate well across the whole noise range.",
        _ALL,
        gdpp_fails_across_the_range,
    ),
    Statement(
        "§6, Figure 2",
        f"GD++ mirrors ConstRR at every noise level (to {percent(EQUAL)} of ConstRR's mean loss).",
        _ALL,
        gdpp_profile_is_constrr,
    ),
    Statement(
        "§6, Figure 2",
        "AdaRR is perfect without noise, and worse as noise increases.",
        _ALL,
        adarr_is_perfect_without_noise,
    ),
    Statement("§6, Figure 2", "TunedRR suffers in the mid-range.", _ALL, tunedrr_suffers_in_the_middle),
    Statement(
        "§6, Figure 2",
        f"FULL and DIAG are comparable at all noise levels (to {percent(COMPARABLE)}).",
        _ALL,
        profiles_are_comparable,
    ),
    Statement(
        "§6, Figure 2",
        "Two-layer DIAG and FULL behave like GD++: they model one noise level in the middle.",
        _ONE,
        two_layers_model_one_noise_level,
    ),
    Statement(
        "§6, Figure 2",
        "With 3 or more layers DIAG and FULL improve across the entire noise spectrum.",
        _ONE,
        three_layers_improve_everywhere,
    ),
    Statement("§6", "Higher noise significantly degrades the prediction.", _ONE, noise_degrades_predictions),
    Statement(
        "Appendix B, Figure 6",
        f"Unadjusted losses can hardly be told apart (to {percent(_VISIBLE)} of the figure's height).",
        _ONE,
        unadjusted_losses_hide_differences,
    ),
)
"""Statements about Figures 2 and 6."""
