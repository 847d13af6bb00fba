"""What the layers of a model do, in words: rescaling, steps, preconditioner, and tests of §5.2 and §5.3."""

import math

from lintra.anatomy.behaviour import NUM_CONTEXTS
from lintra.anatomy.wording import (
    NUM_ERRORS,
    capitalised,
    differ,
    estimate_of,
    is_above,
    is_finite,
    joined,
    layers_of,
    ratio,
    size_of,
    written,
)
from lintra.display import Row
from lintra.evaluation.estimate import Estimate

_ZERO, _ONE = Estimate(0.0, 0.0), Estimate(1.0, 0.0)
_CLOSE = 0.05  # of one: a factor that is known to be closer leaves labels as they are
_ROUNDING = 1e-12  # of the largest ω, below which one has no sign


def on_rescaling(omegas: list[Row], behaviour: list[Row], noise_stds: tuple[float, float]) -> list[str]:
    """Return what layers do to labels, by the measured 1 + d and not by the sign of ω_yy."""
    by_effect: dict[tuple[str, str], list[int]] = {}
    for row in omegas:
        low, high = (_at(behaviour, row["layer"], noise_std, "rescaling") for noise_std in noise_stds)
        by_effect.setdefault((_effect(low), _effect(high)), []).append(row["layer"])
    sentences = []
    for effects, layers in by_effect.items():
        factors = [
            f"{joined([written(_at(behaviour, layer, noise_std, 'rescaling')) for layer in layers])} "
            f"at σ = {noise_std:g}"
            for noise_std in noise_stds
        ]
        spread = max(_row(behaviour, layer, s)["rescaling_spread"] for layer in layers for s in noise_stds)
        text = _rescaled(layers, effects, list(dict.fromkeys(factors)))
        deviation = f"up to {spread:.2g}" if math.isfinite(spread) else "not finite"
        sentences.append(f"{text}; means of {NUM_CONTEXTS:,} contexts, standard deviation over them {deviation}.")
    return sentences + _section_5_2(omegas, behaviour, noise_stds)


def _effect(rescaling: Estimate | None) -> str:
    """Name what a factor does, if it is known well enough."""
    if rescaling is None or not is_finite(rescaling):
        return "unclear"
    if not differ(rescaling, _ONE):
        return "leave" if NUM_ERRORS * rescaling.standard_error < _CLOSE else "unclear"
    if is_above(_ZERO, rescaling):
        return "flip"
    return "shrink" if is_above(_ONE, rescaling) else "stretch"


def _rescaled(layers: list[int], effects: tuple[str, str], factors: list[str]) -> str:
    """Say what layers do to labels, given the effect and the factors at each noise level."""
    subject, ending = capitalised(layers_of(layers)), "" if len(layers) > 1 else "s"
    multiply = "multiplies" if ending else "multiply"
    what = "labels and the prediction so far"
    by = f"by the factor{'' if ending and len(factors) == 1 else 's'} {' and '.join(factors)}"
    if effects[0] != effects[1]:
        named = {
            "unclear": "effect not clear",
            "leave": "no effect",
            "flip": "sign changed",
            "shrink": "shrunk",
            "stretch": "stretched",
        }
        parts = [f"{factor} ({named[effect]})" for factor, effect in zip(factors, effects, strict=True)]
        return f"{subject} {multiply} {what} by {' and by '.join(parts)}"
    texts = {
        "unclear": f"{multiply} {what} {by}, whose means are not clear",
        "leave": f"leave{ending} {what} as they are, multiplied {by}",
        "flip": f"change{ending} the sign of {what}, multiplied {by}",
        "shrink": f"shrink{ending} {what}, {by}",
        "stretch": f"stretch{'es' if ending else ''} {what}, {by}",
    }
    return f"{subject} {texts[effects[0]]}"


def _section_5_2(omegas: list[Row], behaviour: list[Row], noise_stds: tuple[float, float]) -> list[str]:
    """Test §5.2: where ω_yy is negative, labels shrink, and more so where there is more noise."""
    if noise_stds[0] == noise_stds[1]:
        return []
    outcomes: dict[str, list[int]] = {}
    for layer in _negative(omegas, "yy"):
        low, high = (_at(behaviour, layer, noise_std, "rescaling") for noise_std in noise_stds)
        effects = {_effect(low), _effect(high)}
        if effects == {"shrink"} and is_above(low, high):
            outcome = "holds"
        else:
            outcome = "fails" if effects & {"stretch", "flip"} or is_above(high, low) else "undecided"
        outcomes.setdefault(outcome, []).append(layer)
    low, high = noise_stds
    return _tested(
        outcomes,
        "ω_yy is negative",
        f"labels shrink, and more at σ = {high:g} than at σ = {low:g}, as §5.2 says",
        f"the factor does not stay between 0 and 1 and fall from σ = {low:g} to σ = {high:g}: there §5.2 does not "
        "hold",
        "§5.2",
    )


def _section_5_3(omegas: list[Row], behaviour: list[Row], noise_stds: tuple[float, float]) -> list[str]:
    """Test §5.3: where ω_yx and ω_xy of the layer before are negative, steps are shorter with more noise."""
    if noise_stds[0] == noise_stds[1]:
        return []
    outcomes: dict[str, list[int]] = {}
    after = [layer + 1 for layer in _negative(omegas, "xy")]
    for layer in sorted(set(after) & set(_negative(omegas, "yx"))):
        low, high = (_at(behaviour, layer, noise_std, "step") for noise_std in noise_stds)
        if low is None or high is None or not (is_finite(low) and is_finite(high)):
            outcome = "undecided"
        elif is_above(size_of(low), size_of(high)):
            outcome = "holds"
        else:
            outcome = "fails" if is_above(size_of(high), size_of(low)) else "undecided"
        outcomes.setdefault(outcome, []).append(layer)
    low, high = noise_stds
    return _tested(
        outcomes,
        "ω_yx and, in the layer before, ω_xy are negative",
        f"the step is shorter at σ = {high:g} than at σ = {low:g}, as §5.3 says",
        f"the step is longer at σ = {high:g} than at σ = {low:g}: there §5.3 does not hold",
        "§5.3",
    )


def _tested(outcomes: dict[str, list[int]], premise: str, holds: str, fails: str, section: str) -> list[str]:
    texts = {
        "holds": f"{premise}, and {holds}.",
        "fails": f"{premise}, but {fails}.",
        "undecided": f"{premise}; {NUM_CONTEXTS:,} contexts do not show whether {section} holds.",
    }
    return [f"In {layers_of(outcomes[outcome])} {text}" for outcome, text in texts.items() if outcome in outcomes]


def on_steps(omegas: list[Row], behaviour: list[Row], noise_stds: tuple[float, float], dim: int) -> list[str]:
    """Return how long steps along the gradient are, and whether they depend on Σ's eigenvalue."""
    layers = [row["layer"] for row in omegas]
    texts = []
    for noise_std in dict.fromkeys(noise_stds):
        steps = [_at(behaviour, layer, noise_std, "step") for layer in layers]
        texts.append(f"{joined(list(map(written, steps)))} at σ = {noise_std:g}")
    low, high = (_at(behaviour, layers[-1], noise_std, "step") for noise_std in noise_stds)
    sentence = f"Steps along the gradient Σ(a w* − w), layer by layer: {'; '.join(texts)}."
    if any(is_above(_ZERO, _at(behaviour, layer, s, "step")) for layer in layers for s in noise_stds):
        sentence += " Negative ones go against the gradient."
    if noise_stds[0] != noise_stds[1] and low is not None and high is not None:
        sentence += " " + _last_step(low, high, noise_stds)
    return [
        sentence.strip(),
        *_on_preconditioner(layers, behaviour, noise_stds[0], dim),
        *_section_5_3(omegas, behaviour, noise_stds),
    ]


def _last_step(low: Estimate, high: Estimate, noise_stds: tuple[float, float]) -> str:
    if not (is_finite(low) and is_finite(high)):
        return "The last one is not finite."
    are_zero = [not differ(step, _ZERO) for step in (low, high)]
    if any(are_zero):
        zero = [f"σ = {noise_std:g}" for noise_std, is_zero in zip(noise_stds, are_zero, strict=True) if is_zero]
        return f"The last one cannot be told from zero at {joined(zero)}."
    if not differ(size_of(low), size_of(high)):
        return f"The last one is as long at σ = {noise_stds[1]:g} as at σ = {noise_stds[0]:g}, within the error."
    times = written(ratio(size_of(high), size_of(low)))
    return f"The last one is {times} times as long at σ = {noise_stds[1]:g} as at σ = {noise_stds[0]:g}."


def _on_preconditioner(layers: list[int], behaviour: list[Row], noise_std: float, dim: int) -> list[str]:
    """Say whether the last step depends on Σ's eigenvalue, which only earlier layers can bring about."""
    if len(layers) == 1:
        return ["It has one layer, so that no layer before its step can make a preconditioner."]
    least, largest = (_at(behaviour, layers[-1], noise_std, f"step_at_{end}") for end in ("least", "largest"))
    if dim == 1 or least is None or largest is None:
        return []
    numbers = (
        f"At σ = {noise_std:g} the last layer's step is {written(least)} along the eigenvector of Σ's least "
        f"eigenvalue and {written(largest)} along that of its largest"
    )
    if not (is_finite(least) and is_finite(largest)):
        return [f"{numbers}."]
    if not differ(least, largest):
        return [f"{numbers}: {NUM_CONTEXTS:,} contexts show no preconditioner."]
    times = ""
    if differ(largest, _ZERO):
        times = f", {written(ratio(least, largest))} times as much"
    return [f"{numbers}{times}: the layers before it have made a preconditioner."]


def _negative(omegas: list[Row], name: str) -> list[int]:
    """Return the layers in which an ω is negative, and not by rounding."""
    largest = max(abs(row[other]) for row in omegas for other in ("xx", "xy", "yx", "yy"))
    return [row["layer"] for row in omegas if row[name] < -_ROUNDING * largest]


def _row(rows: list[Row], layer: int, noise_std: float) -> Row:
    return next(row for row in rows if row["layer"] == layer and row["noise_std"] == noise_std)


def _at(rows: list[Row], layer: int, noise_std: float, column: str) -> Estimate | None:
    return estimate_of(_row(rows, layer, noise_std), column)
