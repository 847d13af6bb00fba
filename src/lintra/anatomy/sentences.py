"""What the tables of an explanation say, in words."""

import numpy as np

from lintra.display import Row
from lintra.models.base import AbstractModel

_LOW, _HIGH = 1.0, 5.0  # noise levels that are compared
_DOMINATED = 0.5  # standard error of a mean, as a share of it, from which on a few sequences dominate it


def describe(
    model: AbstractModel,
    num_sequences: int,
    *,
    omegas: list[Row],
    structures: list[Row],
    behaviour: list[Row],
    implied_noise: list[Row],
    ablation: list[Row],
    damping: list[Row],
) -> list[str]:
    """Return sentences on what the tables of a model say, of which some are for a number of sequences."""
    return [
        *_on_structures(model, structures),
        *_on_rescaling(omegas, behaviour),
        *_on_steps(omegas, behaviour),
        *_on_implied_noise(implied_noise),
        *_on_ablation(ablation),
        *_on_damping(model, damping, num_sequences),
    ]


def _on_structures(model: AbstractModel, structures: list[Row]) -> list[str]:
    if model.family != "full":
        return []
    inner = [row for row in structures if row["layer"] < model.num_layers] or structures
    share = float(np.mean([row["diagonal_share"] for row in inner]))
    rank = float(np.median([row["rest_rank"] for row in inner]))
    return [
        f"P and Q are diagonal by {share:.0%} of their square, on average before the last layer, and the rest has "
        f"rank {rank:.1f}, about: diagonal-heavy with a low-rank part is what Figure 4 shows."
    ]


def _at(rows: list[Row], layer: int, noise_std: float, column: str) -> float:
    return next(row[column] for row in rows if row["layer"] == layer and row["noise_std"] == noise_std)


def _on_rescaling(omegas: list[Row], behaviour: list[Row]) -> list[str]:
    """§5.2: a negative ω_yy shrinks labels, the more the more noise there is."""
    sentences = []
    for sign, verb in ((-1, "shrink"), (1, "stretch")):
        layers = [row["layer"] for row in omegas if row["yy"] * sign > 0]
        if not layers:
            continue
        low, high = (
            [_at(behaviour, layer, noise_std, "rescaling") for layer in layers] for noise_std in (_LOW, _HIGH)
        )
        more = sign < 0 and all(a > b for a, b in zip(low, high, strict=True))
        sentences.append(
            f"{_layers(layers)}: labels and the prediction so far {verb} (ω_yy {'<' if sign < 0 else '>'} 0), to "
            f"{_listed(low)} of what they were at σ = 1 and to {_listed(high)} at σ = 5"
            + (", the more the noisier, as §5.2 says." if more else ".")
        )
    return sentences


def _on_steps(omegas: list[Row], behaviour: list[Row]) -> list[str]:
    """§5.3: with ω_xy and ω_yx negative, steps are smaller where there is more noise."""
    depth = len(omegas)
    low, high = (
        [_at(behaviour, layer, noise_std, "step") for layer in range(1, depth + 1)] for noise_std in (_LOW, _HIGH)
    )
    both = [row["layer"] for row in omegas if row["xy"] < 0 and row["yx"] < 0]
    last = depth
    ratio = _at(behaviour, last, _LOW, "step_at_least") / _at(behaviour, last, _LOW, "step_at_largest")
    sentences = [
        f"Steps along the gradient, layer by layer: {_listed(low)} at σ = 1 and {_listed(high)} at σ = 5. The "
        f"last one is {high[-1] / low[-1]:.2f} times as long at σ = 5 as at σ = 1.",
        f"At σ = 1 the last layer's step along Σ's least eigenvalue is {ratio:.1f} times that along the largest: "
        "the layers before it have made a preconditioner.",
    ]
    if both:
        sentences.append(
            f"ω_xy and ω_yx are both negative in {_layers(both).lower()}: by §5.3 steps should get smaller with "
            f"noise. In the last layer they {'do' if abs(high[-1]) < abs(low[-1]) else 'do not'}."
        )
    return sentences


def _on_implied_noise(implied_noise: list[Row]) -> list[str]:
    parts = [
        f"{row['implied_noise']:.2f} at {row['noise_std']:g} ({row['bayes_implied_noise']:.2f})"
        for row in implied_noise
    ]
    return [
        "It acts as if the noise level were, at each true one and with the Bayes predictor's in brackets: "
        + ", ".join(parts)
        + "."
    ]


def _on_ablation(ablation: list[Row]) -> list[str]:
    by_median = sorted(ablation, key=lambda row: row["median"])
    least, most = by_median[0], by_median[-1]
    diverging = [row for row in ablation if not row["standard_error"] < _DOMINATED * row["adjusted_loss"]]
    sentences = [
        f"It needs ω_{most['omega']} of layer {most['layer']} most (median loss {most['median']:.3g} without it), "
        f"ω_{least['omega']} of layer {least['layer']} least (cost {least['cost']:.2g} ± "
        f"{least['cost_standard_error']:.1g})."
    ]
    if diverging:
        listed = ", ".join(f"ω_{row['omega']} of layer {row['layer']}" for row in diverging)
        sentences.append(f"Without {listed} it diverges on some sequences, which dominate the mean.")
    return sentences


def _on_damping(model: AbstractModel, damping: list[Row], num_sequences: int) -> list[str]:
    """Which layers are damped, on how many sequences of the problem, and by how much."""
    sentences = []
    if damping and model.damping is None:
        sentences.append(
            "The model is as printed, with stored thresholds: `model.with_damping()` damps it as follows."
        )
    for row in damping:
        if row["damped_share"] > 0:
            what = "The context is scaled" if row["layer"] == "context" else f"Layer {row['layer']} is damped"
            share = f"{_percent(row['damped_share'])} ± {_percent(row['standard_error'])} %"
            sentences.append(f"{what} on {share} of sequences, by at most {row['largest_divisor']:.4g}.")
    never = [row["layer"] for row in damping if row["damped_share"] == 0]
    if "context" in never:
        sentences.append(f"The context is scaled on none of {num_sequences:,} sequences.")
    if layers := [layer for layer in never if layer != "context"]:
        verb = "are" if len(layers) > 1 else "is"
        sentences.append(f"{_layers(layers)} {verb} damped on none of {num_sequences:,} sequences.")
    return sentences


def _percent(share: float) -> str:
    return f"{float(f'{100 * share:.2g}'):g}"  # 100, not 1e+02


def _layers(numbers: list[int]) -> str:
    return f"Layer{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
