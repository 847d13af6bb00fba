"""A readable account of a model: tables, and what they say in plain words."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from lintra.anatomy.ablation import ablation
from lintra.anatomy.behaviour import behaviour, beliefs
from lintra.anatomy.structure import NAMES, omegas, shapes
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Track

_QUIET, _LOUD = 1.0, 5.0  # noise levels that are compared
_OWNED = 0.5  # a mean this many standard errors of which are noise is owned by explosions

Row = dict[str, Any]
"""Values by column."""


@dataclass(frozen=True)
class Account:
    """What was found out about a model.

    Attributes:
        sentences: In plain words.
        omegas: ω per layer, as printed.
        shapes: How diagonal P and Q are.
        behaviour: Rescaling, steps and momentum per layer and noise level.
        beliefs: The noise level it acts on, at each true one.
        ablation: The loss without each ω.
    """

    sentences: list[str]
    omegas: list[Row]
    shapes: list[Row]
    behaviour: list[Row]
    beliefs: list[Row]
    ablation: list[Row] = field(default_factory=list)

    def tables(self) -> dict[str, list[Row]]:
        """All tables by title."""
        titles = {
            "omegas": "ω per layer, as printed",
            "shapes": "P and Q, balanced",
            "behaviour": "What each layer does at each noise level",
            "beliefs": "The noise level it acts on",
            "ablation": "Adjusted loss without one ω",
        }
        return {title: getattr(self, name) for name, title in titles.items()}


def account(
    model: AbstractModel,
    noise: str,
    *,
    num_sequences: int = 65_536,
    key: Key[Array, ""],
    track: Track | None = None,
) -> Account:
    """Read a model.

    Arguments:
        model: Any linear transformer.
        noise: The noise prior that it was trained on.
        num_sequences: Fresh sequences for the ablation.
        key: Randomness.
        track: Shows progress of the ablation.
    """
    keys = jax.random.split(key, 3)
    problem = NoisyRegression(dim=model.dim, context=model.context, noise=noise)
    layers = [
        {"layer": layer, **dict(zip(NAMES, map(float, row), strict=True))}
        for layer, row in enumerate(omegas(model), 1)
    ]
    forms = [
        {
            "layer": shape.layer,
            "head": shape.head,
            "matrix": shape.matrix,
            "size": shape.size,
            "diagonal_share": shape.diagonal_share,
            "rest_rank": shape.rest_rank,
            "largest_rest": shape.rest[0],
        }
        for shape in shapes(model)
    ]
    does = behaviour(model, key=keys[0])
    believes = beliefs(model, noise, key=keys[1])
    needs = ablation(model, problem, num_sequences=num_sequences, key=keys[2], track=track)
    sentences = [
        *_on_shapes(model, forms),
        *_on_rescaling(layers, does),
        *_on_steps(layers, does),
        *_on_beliefs(believes),
        *_on_ablation(needs),
    ]
    return Account(sentences, layers, forms, does, believes, needs)


def _on_shapes(model: AbstractModel, forms: list[Row]) -> list[str]:
    if model.family != "full":
        return []
    inner = [form for form in forms if form["layer"] < model.num_layers] or forms
    share = float(np.mean([form["diagonal_share"] for form in inner]))
    rank = float(np.median([form["rest_rank"] for form in inner]))
    return [
        f"P and Q are diagonal by {share:.0%} of their square, on average before the last layer, and the rest has "
        f"rank {rank:.1f}, about: diagonal-heavy with a low-rank part is what Figure 4 shows."
    ]


def _at(rows: list[Row], layer: int, std: float, column: str) -> float:
    return next(row[column] for row in rows if row["layer"] == layer and row["std"] == std)


def _on_rescaling(layers: list[Row], does: list[Row]) -> list[str]:
    """§5.2: a negative ω_yy shrinks labels, the more the more noise there is."""
    sentences = []
    for sign, verb in ((-1, "shrink"), (1, "stretch")):
        own = [row["layer"] for row in layers if row["yy"] * sign > 0]
        if not own:
            continue
        quiet, loud = ([_at(does, layer, std, "rescaling") for layer in own] for std in (_QUIET, _LOUD))
        more = sign < 0 and all(a > b for a, b in zip(quiet, loud, strict=True))
        sentences.append(
            f"{_layers(own)}: labels and the prediction so far {verb} (ω_yy {'<' if sign < 0 else '>'} 0), to "
            f"{_listed(quiet)} of what they were at σ = 1 and to {_listed(loud)} at σ = 5"
            + (", the more the noisier, as §5.2 says." if more else ".")
        )
    return sentences


def _on_steps(layers: list[Row], does: list[Row]) -> list[str]:
    """§5.3: with ω_xy and ω_yx negative, steps are smaller where there is more noise."""
    depth = len(layers)
    quiet, loud = ([_at(does, layer, std, "step") for layer in range(1, depth + 1)] for std in (_QUIET, _LOUD))
    both = [row["layer"] for row in layers if row["xy"] < 0 and row["yx"] < 0]
    last = depth
    ratio = _at(does, last, _QUIET, "step_at_least") / _at(does, last, _QUIET, "step_at_largest")
    sentences = [
        f"Steps along the gradient, layer by layer: {_listed(quiet)} at σ = 1 and {_listed(loud)} at σ = 5. The "
        f"last one is {loud[-1] / quiet[-1]:.2f} times as long at σ = 5 as at σ = 1.",
        f"At σ = 1 the last layer's step along Σ's least eigenvalue is {ratio:.1f} times that along the largest: "
        "the layers before it have made a preconditioner.",
    ]
    if both:
        sentences.append(
            f"ω_xy and ω_yx are both negative in {_layers(both).lower()}: by §5.3 steps should get smaller with "
            f"noise. In the last layer they {'do' if abs(loud[-1]) < abs(quiet[-1]) else 'do not'}."
        )
    return sentences


def _on_beliefs(believes: list[Row]) -> list[str]:
    parts = [f"{row['believed']:.2f} at {row['std']:g} ({row['bayes_believed']:.2f})" for row in believes]
    return [
        "It acts as if the noise level were, at each true one and with the Bayes predictor's in brackets: "
        + ", ".join(parts)
        + "."
    ]


def _on_ablation(needs: list[Row]) -> list[str]:
    by_median = sorted(needs, key=lambda row: row["median"])
    least, most = by_median[0], by_median[-1]
    exploding = [row for row in needs if not row["standard_error"] < _OWNED * row["adjusted_loss"]]
    sentences = [
        f"It needs ω_{most['omega']} of layer {most['layer']} most (median loss {most['median']:.3g} without it), "
        f"ω_{least['omega']} of layer {least['layer']} least (cost {least['cost']:.2g} ± "
        f"{least['cost_standard_error']:.1g})."
    ]
    if exploding:
        listed = ", ".join(f"ω_{row['omega']} of layer {row['layer']}" for row in exploding)
        sentences.append(f"Without {listed} it explodes on some sequences, which own the mean.")
    return sentences


def _layers(numbers: list[int]) -> str:
    return f"Layer{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
