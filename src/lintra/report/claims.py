"""The statements of the paper about its experiments (§6, Appendix B), each compared with the measurements."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lintra.arguments import KeyLike
from lintra.baselines.iterative import IterativeRidge
from lintra.baselines.ridge import AdaptiveRidge
from lintra.display import select
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.measurement import AbstractMeasurement, Results
from lintra.evaluation.noise_profile import SEQUENCES_PER_LEVEL, Profile
from lintra.evaluation.paper import UNIFORM
from lintra.evaluation.table1_column import Column
from lintra.figures import figure7
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.collection import UnknownModelError, Zoo

_DIVERGED = 100.0  # a loss that is printed as a power of ten
_MAX_STEPS = 200  # of iterative AdaRR


@dataclass(frozen=True)
class StatementResult:
    """A statement of the paper and what was measured.

    Attributes:
        statement: In the paper's sense.
        measured: In numbers.
        holds: Whether it does; `None` where it was not measured.
    """

    statement: str
    measured: str
    holds: bool | None


@dataclass(frozen=True)
class Statement:
    """A statement of the paper.

    Attributes:
        text: In the paper's sense.
        needs: What is measured for it.
        check: From the results to a sentence with numbers, and whether the statement holds.
    """

    text: str
    needs: tuple[AbstractMeasurement[Any], ...]
    check: Callable[[Results], tuple[str, bool]]


@dataclass(frozen=True)
class IterativeSteps(AbstractMeasurement[int | None]):
    """Number of steps after which iterative AdaRR is within 5 % of AdaRR; `None` for more than 200.

    Attributes:
        noise: The noise prior.
    """

    noise: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> int | None:
        """Measure the loss after every step, on one block of sequences."""
        del zoo, num_sequences
        predictors = {"steps": IterativeRidge(_MAX_STEPS), "exact": AdaptiveRidge()}
        measured = evaluate(
            predictors,
            NoisyRegression(noise=self.noise),
            num_sequences=SEQUENCES_PER_LEVEL,
            every_layer=True,
            key=key,
            progress=progress,
        )
        limit = 1.05 * measured.adjusted("exact").mean
        steps = measured.layers("steps")
        return next((step for step in steps if measured.adjusted("steps", step).mean <= limit), None)


NOISY = tuple(map(Column, UNIFORM[1:]))
PROFILES = {noise: Profile(noise, range(2, 8)) for noise in ("uniform(0,5)", "choice(1,3)", "choice(1,3,5)")}
ITERATIVE = tuple(map(IterativeSteps, ("uniform(0,1)", "uniform(0,5)", "choice(1,3)")))


def four_layers_beat_adarr(results: Results) -> tuple[str, bool]:
    """§6: with 4 layers, FULL and DIAG outperform AdaRR for σ_max = 4 and larger."""
    parts, holds = [], []
    for top, column in enumerate(NOISY, 1):
        loss = results[column].losses()
        wins = max(loss["diag", 4], loss["full", 4]) < loss["ada-ridge", None]
        holds.append(wins or top < 4)
        parts.append(f"{top}: {loss['diag', 4]:.3f}, {loss['full', 4]:.3f} against {loss['ada-ridge', None]:.3f}")
    return "Diag, Full against AdaRR by σ_max: " + "; ".join(parts) + ".", all(holds)


def five_layers_match_tunedrr(results: Results) -> tuple[str, bool]:
    """§6: models with 5 or more layers match or exceed TunedRR."""
    behind = []
    for column in NOISY:
        loss = results[column].losses()
        behind += [
            f"{family}-{depth} at {column.noise} ({loss[family, depth]:.4f} against "
            f"{loss['tuned-ridge', None]:.4f})"
            for family in ("diag", "full")
            for depth in (5, 6, 7)
            if loss[family, depth] > 1.02 * loss["tuned-ridge", None]
        ]
    return (
        f"{42 - len(behind)} of 42 do" + (f"; behind are {', '.join(behind)}." if behind else "."),
        not behind,
    )


def gdpp_approaches_constrr(results: Results) -> tuple[str, bool]:
    """§6: GD++ closely approaches ConstRR."""
    gaps = []
    for column in NOISY:
        loss = results[column].losses()
        gaps.append(loss["gd++", 7] / loss["const-ridge", None] - 1)
    listed = ", ".join(f"{gap:.2%}" for gap in gaps)
    return f"7 layers, above ConstRR by {listed} for σ_max = 1 … 7.", max(gaps) < 0.02


def two_layers_model_one_noise_level(results: Results) -> tuple[str, bool]:
    """§6: two-layer FULL and DIAG behave akin to GD++, modelling a single noise variance in the middle."""
    parts, holds = [], True
    for family in ("gd++", "diag", "full"):
        noise_stds, losses = _profile(results, "uniform(0,5)", family, 2)
        best = int(np.argmin(losses))
        inside = 0 < noise_stds[best] < 5
        holds &= inside and losses[0] > 1.2 * losses[best]
        parts.append(
            f"{family} is best at σ = {noise_stds[best]:.2g} ({losses[best]:.3f}; {losses[0]:.3f} at σ = 0)"
        )
    return "; ".join(parts) + ".", holds


def diag_extrapolates_better(results: Results) -> tuple[str, bool]:
    """§6: at {1, 3}, DIAG extrapolates better than FULL to noise levels not used for training."""
    unseen = {}
    for family in ("diag", "full"):
        noise_stds, losses = _profile(results, "choice(1,3)", family, 7)
        unseen[family] = losses[(noise_stds > 0) & (np.abs(noise_stds - 1) > 0.3) & (np.abs(noise_stds - 3) > 0.3)]
    wins, medians = int((unseen["diag"] < unseen["full"]).sum()), {v: np.median(x) for v, x in unseen.items()}
    return (
        f"With 7 layers Diag has the smaller loss at {wins} of {len(unseen['diag'])} unseen noise levels up to 6; "
        f"the middle losses are {medians['diag']:.3g} for Diag and {medians['full']:.3g} for Full.",
        2 * wins > len(unseen["diag"]),
    )


def full_fluctuates_more(results: Results) -> tuple[str, bool]:
    """§6: at {1, 3, 5}, FULL's profile fluctuates more than DIAG's."""
    swings = {}
    for family in ("diag", "full"):
        noise_stds, losses = _profile(results, "choice(1,3,5)", family, 7)
        inside = losses[(noise_stds >= 1) & (noise_stds <= 5)]
        swings[family] = float(np.abs(np.diff(inside)).sum())
    return (
        f"Total variation of the profile with 7 layers from σ = 1 to 5: Full {swings['full']:.3f}, "
        f"Diag {swings['diag']:.3f}.",
        swings["full"] > swings["diag"],
    )


def tunedrr_suffers_in_the_middle(results: Results) -> tuple[str, bool]:
    """§6: TunedRR's prediction suffers in the mid-range."""
    noise_stds, tuned = _profile(results, "uniform(0,5)", "tuned-ridge", None)
    _, full = _profile(results, "uniform(0,5)", "full", 7)
    behind = (tuned - full)[noise_stds <= 5]
    worst = noise_stds[int(np.argmax(behind))]
    return (
        f"At uniform(0,5) it loses most to Full with 7 layers at σ = {worst:.2g}, by {behind.max():.3f}.",
        1 < worst < 4.5,
    )


def layers_go_from_high_noise_to_low(results: Results) -> tuple[str, bool]:
    """Appendix B on Figure 7: GD++'s early layers model higher noise, later ones lower noise."""
    curves = _after_each_of_eight(results, "gd++")
    best = [float(noise_stds[int(np.argmin(losses))]) for noise_stds, losses in curves]
    listed = ", ".join(f"{noise_std:g}" for noise_std in best)
    return f"Noise level of the least loss after each of 8 layers: {listed}.", best[0] > best[-1]


def diag_improves_at_low_noise_last(results: Results) -> tuple[str, bool]:
    """Appendix B on Figure 7: DIAG is at first like GD++, then improves dramatically at low noise."""
    low, high = _by_layer(results, "diag", 0, 2), _by_layer(results, "diag", 3, 5)
    return (
        f"8 layers, mean loss after each at σ ≤ 2: {_listed(low)}; at σ from 3 to 5: {_listed(high)}.",
        low[-1] / low[3] < high[-1] / high[3],
    )


def full_declines_at_high_noise(results: Results) -> tuple[str, bool]:
    """Appendix B on Figure 7: FULL first improves at low noise, then declines at high noise in the last layer."""
    low, high = _by_layer(results, "full", 0, 2), _by_layer(results, "full", 5.5, 10)
    return (
        f"8 layers, mean loss after each at σ ≤ 2: {_listed(low)}; at σ from 5.5 to 10: {_listed(high)}.",
        high[-1] > min(high[:-1]),
    )


def iterative_adarr_needs_many_steps(results: Results) -> tuple[str, bool]:
    """§6: the iterative version of AdaRR converges to it only after about 100 iterations."""
    counts = {need.noise: results[need] for need in ITERATIVE}
    listed = ", ".join(f"{count or f'more than {_MAX_STEPS}'} at {noise}" for noise, count in counts.items())
    most = max(count or _MAX_STEPS + 1 for count in counts.values())
    return f"Steps to within 5 % of AdaRR: {listed}.", 50 <= most <= _MAX_STEPS


STATEMENTS = (
    Statement("With 4 layers Diag and Full outperform AdaRR for σ_max ≥ 4.", NOISY, four_layers_beat_adarr),
    Statement(
        "Diag and Full with 5 or more layers match or exceed TunedRR (to 2 %).", NOISY, five_layers_match_tunedrr
    ),
    Statement("GD++ approaches ConstRR.", NOISY, gdpp_approaches_constrr),
    Statement(
        "Two-layer Diag and Full behave like GD++: they model one noise level in the middle.",
        (PROFILES["uniform(0,5)"],),
        two_layers_model_one_noise_level,
    ),
    Statement(
        "Trained on {1, 3}, Diag extrapolates better than Full.",
        (PROFILES["choice(1,3)"],),
        diag_extrapolates_better,
    ),
    Statement(
        "Trained on {1, 3, 5}, Full fluctuates more than Diag.", (PROFILES["choice(1,3,5)"],), full_fluctuates_more
    ),
    Statement("TunedRR suffers in the mid-range.", (PROFILES["uniform(0,5)"],), tunedrr_suffers_in_the_middle),
    Statement(
        "GD++, layer by layer: early layers model higher noise, later ones lower noise.",
        figure7.NEEDS,
        layers_go_from_high_noise_to_low,
    ),
    Statement(
        "Diag, layer by layer: at first like GD++, then dramatically better, above all at low noise.",
        figure7.NEEDS,
        diag_improves_at_low_noise_last,
    ),
    Statement(
        "Full, layer by layer: low noise improves first, then high noise declines, above all in the last layer.",
        figure7.NEEDS,
        full_declines_at_high_noise,
    ),
    Statement("Iterative AdaRR needs about 100 steps.", ITERATIVE, iterative_adarr_needs_many_steps),
)
"""The statements, in the paper's order."""


def check_statement(statement: Statement, results: Results) -> StatementResult:
    """Compare a statement with the results of its needs; where models are missing, this cannot be done."""
    try:
        measured, holds = statement.check(results)
    except UnknownModelError as error:
        return StatementResult(statement.text, f"Not measured: {error}", holds=None)
    except KeyError as error:
        name = "-".join(str(part) for part in error.args[0] if part is not None)
        return StatementResult(statement.text, f"Not measured, since {name} is missing.", holds=None)
    return StatementResult(statement.text, measured, bool(holds))


def _profile(results: Results, noise: str, method: str, num_layers: int | None) -> list[np.ndarray]:
    """Return noise levels and losses at each; raise KeyError where the model is missing."""
    curve = select(results[PROFILES[noise]], "noise_std", "adjusted_loss", method=method, layers=num_layers)
    if not len(curve[0]):
        raise KeyError((method, num_layers))
    return curve


def _after_each_of_eight(results: Results, family: str) -> list[list[np.ndarray]]:
    """Return noise levels and losses at each, after each layer of the model with eight layers."""
    rows = figure7.compute(results)
    curves = [
        select(rows, "noise_std", "adjusted_loss", method=family, layers=8, layer=layer) for layer in range(1, 9)
    ]
    if not all(len(noise_stds) for noise_stds, _ in curves):
        raise KeyError((family, 8))
    return curves


def _by_layer(results: Results, family: str, low: float, high: float) -> list[float]:
    """Return the mean loss over a range of noise levels, after each of eight layers."""
    return [
        float(losses[(noise_stds >= low) & (noise_stds <= high)].mean())
        for noise_stds, losses in _after_each_of_eight(results, family)
    ]


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.3f}" if value < _DIVERGED else f"{value:.0e}" for value in values)
