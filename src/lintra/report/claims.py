"""What the paper says about its experiments (§6, Appendix B), each statement held against the measurements."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from lintra.baselines.iterative import IterativeRidge
from lintra.baselines.ridge import AdaptiveRidge
from lintra.display import select
from lintra.evaluation.adjusted_loss import evaluate, evaluate_layers
from lintra.evaluation.measurement import Measurements, Row
from lintra.evaluation.paper import UNIFORM
from lintra.problem.noisy_regression import NoisyRegression

NOISY = UNIFORM[1:]
_BEYOND = 100.0  # a model that has exploded


@dataclass(frozen=True)
class Evidence:
    """Measurements, and the rows behind the figures, by number."""

    measurements: Measurements
    figures: dict[str, list[Row]]


@dataclass(frozen=True)
class Verdict:
    """A statement of the paper and what was measured.

    Attributes:
        statement: In the paper's sense.
        measured: In numbers.
        holds: Whether it does; nothing where it was not measured.
    """

    statement: str
    measured: str
    holds: bool | None


def four_layers_beat_adarr(evidence: Evidence) -> Verdict:
    """§6: with 4 layers, FULL and DIAG outperform AdaRR for σ_max = 4 and larger."""
    parts, holds = [], []
    for top in range(1, 8):
        loss = _losses(evidence, f"uniform(0,{top})")
        wins = max(loss["diag", 4], loss["full", 4]) < loss["ada-ridge", None]
        holds.append(wins or top < 4)
        parts.append(f"{top}: {loss['diag', 4]:.3f}, {loss['full', 4]:.3f} against {loss['ada-ridge', None]:.3f}")
    return Verdict(
        "With 4 layers Diag and Full outperform AdaRR for σ_max ≥ 4.",
        "Diag, Full against AdaRR by σ_max: " + "; ".join(parts) + ".",
        all(holds),
    )


def five_layers_match_tunedrr(evidence: Evidence) -> Verdict:
    """§6: models with 5 or more layers match or exceed TunedRR."""
    behind = []
    for noise in NOISY:
        loss = _losses(evidence, noise)
        behind += [
            f"{variant}-{depth} at {noise} ({loss[variant, depth]:.4f} against {loss['tuned-ridge', None]:.4f})"
            for variant in ("diag", "full")
            for depth in (5, 6, 7)
            if loss[variant, depth] > 1.02 * loss["tuned-ridge", None]
        ]
    return Verdict(
        "Diag and Full with 5 or more layers match or exceed TunedRR (to 2 %).",
        f"{42 - len(behind)} of 42 do" + (f"; behind are {', '.join(behind)}." if behind else "."),
        not behind,
    )


def gdpp_approaches_constrr(evidence: Evidence) -> Verdict:
    """§6: GD++ closely approaches ConstRR."""
    gaps = []
    for noise in NOISY:
        loss = _losses(evidence, noise)
        gaps.append(loss["gd++", 7] / loss["const-ridge", None] - 1)
    listed = ", ".join(f"{gap:.2%}" for gap in gaps)
    return Verdict(
        "GD++ approaches ConstRR.", f"7 layers, above ConstRR by {listed} for σ_max = 1 … 7.", max(gaps) < 0.02
    )


def two_layers_model_one_noise_level(evidence: Evidence) -> Verdict:
    """§6: two-layer FULL and DIAG behave akin to GD++, modelling a single noise variance in the middle."""
    parts, holds = [], True
    for variant in ("gd++", "diag", "full"):
        stds, losses = _profile(evidence, "uniform(0,5)", variant, 2)
        best = int(np.argmin(losses))
        inside = 0 < stds[best] < 5
        holds &= inside and losses[0] > 1.2 * losses[best]
        parts.append(f"{variant} is best at σ = {stds[best]:.2g} ({losses[best]:.3f}; {losses[0]:.3f} at σ = 0)")
    return Verdict(
        "Two-layer Diag and Full behave like GD++: they model one noise level in the middle.",
        "; ".join(parts) + ".",
        holds,
    )


def diag_extrapolates_better(evidence: Evidence) -> Verdict:
    """§6: at {1, 3}, DIAG extrapolates better than FULL to noise levels not used for training."""
    unseen = {}
    for variant in ("diag", "full"):
        stds, losses = _profile(evidence, "choice(1,3)", variant, 7)
        unseen[variant] = losses[(stds > 0) & (np.abs(stds - 1) > 0.3) & (np.abs(stds - 3) > 0.3)]
    wins, medians = int((unseen["diag"] < unseen["full"]).sum()), {v: np.median(x) for v, x in unseen.items()}
    return Verdict(
        "Trained on {1, 3}, Diag extrapolates better than Full.",
        f"With 7 layers Diag has the smaller loss at {wins} of {len(unseen['diag'])} unseen noise levels up to 6; "
        f"the middle losses are {medians['diag']:.3g} for Diag and {medians['full']:.3g} for Full.",
        2 * wins > len(unseen["diag"]),
    )


def full_fluctuates_more(evidence: Evidence) -> Verdict:
    """§6: at {1, 3, 5}, FULL's profile fluctuates more than DIAG's."""
    swings = {}
    for variant in ("diag", "full"):
        stds, losses = _profile(evidence, "choice(1,3,5)", variant, 7)
        inside = losses[(stds >= 1) & (stds <= 5)]
        swings[variant] = float(np.abs(np.diff(inside)).sum())
    return Verdict(
        "Trained on {1, 3, 5}, Full fluctuates more than Diag.",
        f"Total variation of the profile with 7 layers from σ = 1 to 5: Full {swings['full']:.3f}, "
        f"Diag {swings['diag']:.3f}.",
        swings["full"] > swings["diag"],
    )


def tunedrr_suffers_in_the_middle(evidence: Evidence) -> Verdict:
    """§6: TunedRR's prediction suffers in the mid-range."""
    stds, tuned = _profile(evidence, "uniform(0,5)", "tuned-ridge", None)
    _, full = _profile(evidence, "uniform(0,5)", "full", 7)
    behind = (tuned - full)[stds <= 5]
    worst = stds[int(np.argmax(behind))]
    return Verdict(
        "TunedRR suffers in the mid-range.",
        f"At uniform(0,5) it loses most to Full with 7 layers at σ = {worst:.2g}, by {behind.max():.3f}.",
        1 < worst < 4.5,
    )


def layers_go_from_high_noise_to_low(evidence: Evidence) -> Verdict:
    """Appendix B on Figure 7: GD++'s early layers model higher noise, later ones lower noise."""
    best = []
    for after in range(1, 9):
        stds, losses = _after(evidence, "gd++", 8, after)
        best.append(float(stds[int(np.argmin(losses))]))
    return Verdict(
        "GD++, layer by layer: early layers model higher noise, later ones lower noise.",
        f"Noise level of the least loss after each of 8 layers: {', '.join(f'{level:g}' for level in best)}.",
        best[0] > best[-1],
    )


def diag_improves_at_low_noise_last(evidence: Evidence) -> Verdict:
    """Appendix B on Figure 7: DIAG is at first like GD++, then improves dramatically at low noise."""
    low, high = _by_layer(evidence, "diag", 0, 2), _by_layer(evidence, "diag", 3, 5)
    return Verdict(
        "Diag, layer by layer: at first like GD++, then dramatically better, above all at low noise.",
        f"8 layers, mean loss after each at σ ≤ 2: {_listed(low)}; at σ from 3 to 5: {_listed(high)}.",
        low[-1] / low[3] < high[-1] / high[3],
    )


def full_declines_at_high_noise(evidence: Evidence) -> Verdict:
    """Appendix B on Figure 7: FULL first improves at low noise, then declines at high noise in the last layer."""
    low, high = _by_layer(evidence, "full", 0, 2), _by_layer(evidence, "full", 5.5, 10)
    return Verdict(
        "Full, layer by layer: low noise improves first, then high noise declines, above all in the last layer.",
        f"8 layers, mean loss after each at σ ≤ 2: {_listed(low)}; at σ from 5.5 to 10: {_listed(high)}.",
        high[-1] > min(high[:-1]),
    )


def iterative_adarr_needs_many_steps(evidence: Evidence) -> Verdict:
    """§6: the iterative version of AdaRR converges to it only after about 100 iterations."""
    parts, counts = [], []
    for noise in ("uniform(0,1)", "uniform(0,5)", "choice(1,3)"):
        problem, settings = NoisyRegression(noise=noise), {"num_sequences": 8192, "key": jax.random.key(0)}
        path = evaluate_layers(IterativeRidge(200), problem, **settings)
        limit = 1.05 * evaluate({"exact": AdaptiveRidge()}, problem, **settings).adjusted("exact").mean
        count = next((int(name) for name in path.losses if path.adjusted(name).mean <= limit), None)
        counts.append(count or 201)
        parts.append(f"{count or 'more than 200'} at {noise}")
    return Verdict(
        "Iterative AdaRR needs about 100 steps.",
        f"Steps to within 5 % of AdaRR: {', '.join(parts)}.",
        50 <= max(counts) <= 200,
    )


CLAIMS: tuple[Callable[[Evidence], Verdict], ...] = (
    four_layers_beat_adarr,
    five_layers_match_tunedrr,
    gdpp_approaches_constrr,
    two_layers_model_one_noise_level,
    diag_extrapolates_better,
    full_fluctuates_more,
    tunedrr_suffers_in_the_middle,
    layers_go_from_high_noise_to_low,
    diag_improves_at_low_noise_last,
    full_declines_at_high_noise,
    iterative_adarr_needs_many_steps,
)


def judge(claim: Callable[[Evidence], Verdict], evidence: Evidence) -> Verdict:
    """Hold a statement against the measurements; where models are missing, it cannot be."""
    try:
        return claim(evidence)
    except KeyError as error:
        statement = (claim.__doc__ or "").partition("\n")[0]
        name = "-".join(str(part) for part in error.args[0] if part is not None)
        return Verdict(statement, f"Not measured, since {name} is missing.", holds=None)


def _losses(evidence: Evidence, noise: str) -> dict[tuple[str, int | None], float]:
    """A column of Table 1."""
    rows = evidence.measurements.column(noise).rows
    return {(row.method, row.layers): row.adjusted_loss for row in rows}


def _profile(evidence: Evidence, noise: str, method: str, layers: int | None) -> list[np.ndarray]:
    """Noise levels and losses at each."""
    return _curve(evidence.measurements.profile(noise, range(2, 8)), method=method, layers=layers)


def _after(evidence: Evidence, method: str, layers: int, after: int) -> list[np.ndarray]:
    """Noise levels and losses at each, after so many layers."""
    return _curve(evidence.figures["7"], method=method, layers=layers, after=after)


def _curve(rows: list[Row], *, method: str, layers: int | None, **where: int) -> list[np.ndarray]:
    found = select(rows, "std", "adjusted_loss", method=method, layers=layers, **where)
    if not len(found[0]):
        raise KeyError((method, layers))
    return found


def _by_layer(evidence: Evidence, method: str, low: float, high: float) -> list[float]:
    """Mean loss over a range of noise levels, after each of eight layers."""
    means = []
    for after in range(1, 9):
        stds, losses = _after(evidence, method, 8, after)
        means.append(float(losses[(stds >= low) & (stds <= high)].mean()))
    return means


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.3f}" if value < _BEYOND else f"{value:.0e}" for value in values)
