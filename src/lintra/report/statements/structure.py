"""Statements about what models are: Figure 4, FULL against DIAG, one noise estimate of GD++, adaptive terms."""

from lintra.evaluation.estimate import Estimate
from lintra.evaluation.layers import SEEDED
from lintra.evaluation.measurement import Results
from lintra.evaluation.paper import UNIFORM
from lintra.report.statements.anatomy import ImpliedNoise, ModelDistance, Structures, WithoutOmega
from lintra.report.statements.base import (
    Decision,
    Statement,
    all_hold,
    at_most,
    count,
    is_above,
    minus,
    negate,
    percent,
    short,
)
from lintra.report.statements.needs import LABELS, model_name

_DIAGONAL_HEAVY = 0.75  # share of a matrix's squared norm on the diagonal of Eq. (8)
_LOW_RANK = 3.0  # effective rank of the rest, (Σ s²)² / Σ s⁴; a random 11 × 11 matrix has 5.4 on average
_CONSTANT = 0.05  # relative range of implied noise levels over σ that counts as one noise level
_IDENTICAL = 1e-6  # distance of weights that is rounding; losses are about 0.04

FIGURE4 = Structures(model_name("full", 4, "choice(1,3)"))
PAIRS = {noise: ModelDistance(model_name("full", 7, noise), model_name("diag", 7, noise)) for noise in UNIFORM[1:]}
IMPLIED = {family: ImpliedNoise(model_name(family, 7, SEEDED)) for family in ("gd++", "diag", "full")}
ABLATED = {family: WithoutOmega(model_name(family, 7, SEEDED)) for family in ("diag", "full")}


def weights_are_diagonal_heavy(results: Results) -> tuple[str, Decision]:
    """§5, Figure 4: "final learned weights that are very diagonal heavy"."""
    shares = {f"{row['matrix']}{row['layer']}": row["diagonal_share"] for row in results[FIGURE4]}
    decisions = [share >= _DIAGONAL_HEAVY for share in shares.values()]
    listed = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
    return (
        f"Share of the squared norm on the diagonal of Eq. (8): {listed}; at least {percent(_DIAGONAL_HEAVY)} in "
        f"{count(decisions)} (exact, no sequences). Of the last P only the last row is read.",
        all_hold(decisions),
    )


def rest_is_low_rank(results: Results) -> tuple[str, Decision]:
    """§5, §6, Figure 4: "with some low-rank component"."""
    ranks = {
        f"{row['matrix']}{row['layer']}": (row["rest_rank"], row["largest_rest"])
        for row in results[FIGURE4]
        if row["diagonal_share"] < 1 - 1e-9  # a diagonal matrix has no rest
    }
    decisions = [rank <= _LOW_RANK for rank, _ in ranks.values()]
    listed = ", ".join(f"{name} {rank:.1f} ({largest:.2f})" for name, (rank, largest) in ranks.items())
    return (
        "Effective rank of what is off the diagonal (and its largest singular value as a share of the matrix): "
        f"{listed or 'there is no rest'}; at most {_LOW_RANK:g} in {count(decisions)} (exact, no sequences).",
        all_hold(decisions),
    )


def full_and_diag_are_not_identical(results: Results) -> tuple[str, Decision]:
    """§6: "we believe that these models are actually not identical despite their similar performance"."""
    parts, decisions = [], []
    for noise, need in PAIRS.items():
        (row,) = results[need]
        distance = Estimate(row["distance"], row["standard_error"])
        decisions.append(negate(at_most(distance, _IDENTICAL)))
        parts.append(f"{noise} {short(distance)} ({row['tensor_difference']:.2f})")
    return (
        "½E‖w_FULL − w_DIAG‖² with 7 layers (and the relative difference of their effective tensors): "
        f"{', '.join(parts)}; above {_IDENTICAL:g} at {count(decisions)}.",
        all_hold(decisions),
    )


def gdpp_is_one_noise_estimate(results: Results) -> tuple[str, Decision]:
    """§2.3: GD++ "converges to a solution which can be interpreted as a single noise variance estimate"."""
    parts, spreads = [], {}
    for family, need in IMPLIED.items():
        estimates = [Estimate(row["implied_noise"], row["standard_error"]) for row in results[need]]
        low, high = (choose(estimates, key=lambda e: e.mean) for choose in (min, max))
        middle = sum(estimate.mean for estimate in estimates) / len(estimates)
        spread = minus(high, low)
        spreads[family] = Estimate(spread.mean / middle, spread.standard_error / middle)
        parts.append(f"{LABELS[family]} {', '.join(map(short, estimates))}")
    others = [negate(at_most(spreads[family], _CONSTANT)) for family in ("diag", "full")]
    return (
        f"σ of the nearest ridge regression at true σ = 0, 1, 2, 3, 4, 5, 7 layers at {SEEDED}: "
        f"{'; '.join(parts)}. Its range / mean is {short(spreads['gd++'])} for GD++, {short(spreads['diag'])} for "
        f"DIAG and {short(spreads['full'])} for FULL. The nearest is found to 1.5 %.",
        all_hold([at_most(spreads["gd++"], _CONSTANT), *others]),
    )


def adaptive_terms_are_used(results: Results) -> tuple[str, Decision]:
    """§7: the algorithm "incorporates noise-aware step-size adjustments and rescaling" (ω_xy, ω_yy)."""
    parts, decisions = [], []
    for family, need in ABLATED.items():
        losses = results[need]
        costs = [losses.difference(omega, "model") for omega in ("xy", "yy")]
        decisions += map(is_above, costs)
        parts.append(
            f"{LABELS[family]} {short(losses.estimate('model'))}, + {short(costs[0])} without ω_xy, + "
            f"{short(costs[1])} without ω_yy"
        )
    return (
        f"Loss with 7 layers at {SEEDED}, and what it costs to set a term to zero in all layers: "
        f"{'; '.join(parts)}.",
        all_hold(decisions),
    )


STATEMENTS = (
    Statement(
        "§2.3",
        f"GD++ is a single noise estimate for all data (to {percent(_CONSTANT)}), and DIAG and FULL are not.",
        tuple(IMPLIED.values()),
        gdpp_is_one_noise_estimate,
    ),
    Statement(
        "§5, §6, Figure 4",
        f"P and Q of FULL are very diagonal heavy (each has at least {percent(_DIAGONAL_HEAVY)} of its squared "
        "norm there).",
        (FIGURE4,),
        weights_are_diagonal_heavy,
    ),
    Statement(
        "§5, §6, Figure 4",
        f"What is not diagonal in P and Q is of low rank (effective rank at most {_LOW_RANK:g} of 11 in each).",
        (FIGURE4,),
        rest_is_low_rank,
    ),
    Statement("§6", "FULL and DIAG are not identical.", tuple(PAIRS.values()), full_and_diag_are_not_identical),
    Statement(
        "§5.2, §5.3, §7",
        "The learned algorithms use adaptive step sizes (ω_xy) and adaptive rescaling (ω_yy).",
        tuple(ABLATED.values()),
        adaptive_terms_are_used,
    ),
)
"""Statements about parameters and functions."""
