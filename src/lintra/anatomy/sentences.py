"""What the tables of an explanation say, in words. A sentence is there only if a number supports it."""

import numpy as np

from lintra.anatomy.ablation_sentences import on_ablation
from lintra.anatomy.behaviour import NUM_CONTEXTS
from lintra.anatomy.layer_sentences import on_rescaling, on_steps
from lintra.anatomy.prior_loss import BAYES, DAMPED, PRINTED
from lintra.anatomy.wording import capitalised, estimate_of, is_above, joined, layers_of, written
from lintra.display import Row
from lintra.evaluation.estimate import Estimate
from lintra.models.base import AbstractModel

_DIAGONAL = 0.5  # share of the square from which on a matrix is diagonal-heavy
_LOW_RANK = 1 / 3  # of d+1; a matrix of independent normal numbers has an effective rank of one half
_RIDGE_LIKE = 0.1  # squared distance to ridge regression, relative, up to which weights are called its own
_GRID_STEP = 10 ** (8 / 600 / 2) - 1  # of σ, in `implied_noise_std`: 600 steps over 8 decades of σ²
_CONFIDENCE = 3.0  # −log 0.05: a rate of 3/n shows itself in n sequences with a probability of 95 %


def describe(
    model: AbstractModel,
    noise: str,
    noise_stds: tuple[float, float],
    *,
    losses: list[Row],
    omegas: list[Row],
    structures: list[Row],
    behaviour: list[Row],
    implied_noise: list[Row],
    ablation: list[Row],
    damping: list[Row],
) -> list[str]:
    """Return sentences on what the tables of a model say.

    Args:
        model: The model.
        noise: Its noise prior.
        noise_stds: Two noise levels of the tables that are compared.
        losses: The tables of `Explanation`, and the others:
        omegas: the four ω,
        structures: P and Q,
        behaviour: what layers do,
        implied_noise: the noise level it acts on,
        ablation: the loss without each ω,
        damping: how often layers are damped.

    Returns:
        The sentences. If the model explodes on its own prior, the first one says so.
    """
    by_name = {row["predictor"]: row for row in losses}
    given = by_name[PRINTED if model.damping is None else DAMPED]
    return [
        *_on_explosions(by_name, noise, model.dim),
        *_on_loss(given, by_name[BAYES], noise),
        *_on_structures(model, structures),
        *on_rescaling(omegas, behaviour, noise_stds),
        *on_steps(omegas, behaviour, noise_stds, model.dim),
        *_on_implied_noise(implied_noise),
        *on_ablation(ablation, given, model.num_layers),
        *_on_damping(model, damping, given["sequences"]),
    ]


def _on_explosions(by_name: dict[str, Row], noise: str, dim: int) -> list[str]:
    """Warn if the model explodes on its own prior as printed, and say whether damping helps."""
    printed, damped = by_name[PRINTED], by_name.get(DAMPED)
    if not printed["exploded"] and not (damped and damped["exploded"]):
        return []
    warning = (
        f"Warning: as printed it explodes on {_of(printed['exploded'], printed['sequences'])} fresh sequences of "
        f"{noise}: their adjusted loss is above 5d = {5 * dim} or not finite."
    )
    if damped is None:
        return [f"{warning} Damping has no thresholds here, since the model overflows where they are measured."]
    thresholds = {"stored": "its stored thresholds", "measured": "thresholds measured on its prior"}
    which = f"Damped with {thresholds[damped['thresholds']]} it"
    if not damped["exploded"]:
        return [f"{warning} {which} explodes on none of them."]
    return [f"{warning} {which} explodes on {damped['exploded']:,} of them."]


def _on_loss(given: Row, bayes: Row, noise: str) -> list[str]:
    number, count = f"{given['sequences']:,}", given["exploded"]
    loss, floor, excess = (
        estimate_of(given, "adjusted_loss"),
        estimate_of(bayes, "adjusted_loss"),
        estimate_of(given, "excess"),
    )
    sentence = f"Its adjusted loss on {number} fresh sequences of {noise} is {written(loss)}"
    if count:
        middle = written(estimate_of(given, "median"))
        return [
            f"{sentence}, a mean that exploded sequences dominate; the median is {middle}. The Bayes floor is "
            f"{written(floor)} (median {written(estimate_of(bayes, 'median'))})."
        ]
    return [
        f"{sentence}; the Bayes floor is {written(floor)}, and the difference on the same sequences "
        f"{written(excess)}. None of the sequences explodes: at 95 % confidence fewer than "
        f"{_CONFIDENCE / given['sequences']:.1g} of all do."
    ]


def _on_structures(model: AbstractModel, structures: list[Row]) -> list[str]:
    """Test what Figure 4 shows on P and Q of FULL: diagonal-heavy, with a low-rank part."""
    if model.family != "full":
        return []
    inner = [row for row in structures if row["layer"] < model.num_layers] or structures
    if not inner:
        return ["All of P and Q are zero."]
    shares = [row["diagonal_share"] for row in inner]
    ranks = [row["rest_rank"] for row in inner]
    share, rank = float(np.mean(shares)), float(np.median(ranks))
    where = "before the last layer" if model.num_layers > 1 else "of its layer"
    sentence = (
        f"{100 * share:.0f} % of the square of P and Q {where} is on the diagonal (mean of {len(inner)} matrices, "
        f"from {100 * min(shares):.0f} to {100 * max(shares):.0f} %), and the rest has an effective "
        f"rank of {rank:.1f} (median, from {min(ranks):.1f} to {max(ranks):.1f})"
    )
    if share <= _DIAGONAL:
        return [f"{sentence}: not diagonal-heavy, other than Figure 4 shows."]
    if max(ranks) == 0:
        return [f"{sentence}: diagonal, without the low-rank part that Figure 4 shows."]
    if rank > _LOW_RANK * (model.dim + 1):
        return [f"{sentence}: diagonal-heavy as Figure 4 shows, but the rest is not of low rank."]
    return [f"{sentence}: diagonal-heavy with a low-rank part, as Figure 4 shows."]


def _on_implied_noise(implied_noise: list[Row]) -> list[str]:
    """Say which σ the model acts on, where its weights are close to those of a ridge regression."""
    limit = Estimate(_RIDGE_LIKE, 0.0)
    near, far, overflowed, distances = [], [], [], []
    for row in implied_noise:
        noise_std, distance = f"{row['noise_std']:g}", estimate_of(row, "distance")
        if row["overflowed"]:
            overflowed.append(f"{row['overflowed']:,} of {NUM_CONTEXTS:,} contexts at σ = {noise_std}")
        elif distance is not None and is_above(limit, distance):
            implied, bayes = (estimate_of(row, f"{prefix}implied_noise") for prefix in ("", "bayes_"))
            distances.append(distance)
            near.append(f"{written(implied)} at {noise_std} ({written(bayes)})")
        else:
            far.append(f"{written(distance)} at σ = {noise_std}")
    sentences = []
    if near:
        sentences.append(
            "It acts as if σ were, at each true one and with the Bayes predictor's in brackets: "
            f"{', '.join(near)}. It is the σ of the nearest ridge regression, whose weights are away by at most "
            f"{written(max(distances, key=lambda distance: distance.mean))} of their square (means of "
            f"{NUM_CONTEXTS:,} contexts; values of σ are searched in steps of {100 * _GRID_STEP:.1f} %)."
        )
    if far:
        sentences.append(
            "It does not do ridge regression at these noise levels: the squared distance of its weights to the "
            f"nearest ridge solution, as a share of the solution's square, is {', '.join(far)} "
            f"({NUM_CONTEXTS:,} contexts each)."
        )
    if overflowed:
        sentences.append(f"Its weights are not finite on {joined(overflowed)}.")
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
            sentences.append(
                f"{what} on {share} of {num_sequences:,} sequences, by at most {row['largest_divisor']:.4g}."
            )
    never = [row["layer"] for row in damping if row["damped_share"] == 0]
    if "context" in never:
        sentences.append(f"The context is scaled on none of {num_sequences:,} sequences.")
    if layers := [layer for layer in never if layer != "context"]:
        verb = "are" if len(layers) > 1 else "is"
        sentences.append(f"{capitalised(layers_of(layers))} {verb} damped on none of {num_sequences:,} sequences.")
    return sentences


def _of(count: int, total: int) -> str:
    return f"{f'{count:,}' if count else 'none'} of {total:,}"


def _percent(share: float) -> str:
    return f"{float(f'{100 * share:.2g}'):g}"  # 100, not 1e+02
