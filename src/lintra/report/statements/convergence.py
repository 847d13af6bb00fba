"""Statements about how many steps or layers are needed (§6): iterative AdaRR, and linear transformers."""

import math
from dataclasses import dataclass

from lintra.arguments import KeyLike
from lintra.baselines.iterative import IterativeRidge
from lintra.baselines.ridge import AdaptiveRidge
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.measurement import AbstractMeasurement, Results
from lintra.evaluation.noise_profile import SEQUENCES_PER_LEVEL
from lintra.evaluation.trimmed_losses import TrimmedMeans
from lintra.problem.noisy_regression import NoisyRegression
from lintra.report.statements.base import Decision, Statement, all_hold, at_most, count, is_below, percent, short
from lintra.report.statements.needs import COLUMNS, DEEP, LABELS, MIXED, column, model_name
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.collection import Zoo

_MAX_STEPS = 200  # of iterative AdaRR
_ABOUT = (50, 200)  # numbers of steps that are about 100
_REACHED = 0.05  # relative distance from AdaRR at which the iteration has converged to it
_CONVERGED = 0.05  # share of the excess over the Bayes floor that more layers may still gain


@dataclass(frozen=True)
class IterativeSteps(AbstractMeasurement[list[Row]]):
    """Loss of iterative AdaRR after each of 200 steps, as a ratio to AdaRR's on the same sequences.

    Attributes:
        noise: The noise prior.
    """

    noise: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure the trimmed mean loss after every step, on one block of sequences."""
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
        losses = TrimmedMeans.from_losses(measured.adjusted_losses)
        ratios = {step: losses.ratio(("steps", step), "exact") for step in measured.layers("steps")}
        return [
            {"noise": self.noise, "step": step, "ratio": ratio.mean, "standard_error": ratio.standard_error}
            for step, ratio in ratios.items()
        ]


ITERATIVE = tuple(map(IterativeSteps, ("uniform(0,1)", "uniform(0,5)", "choice(1,3)")))


def iterative_adarr_needs_many_steps(results: Results) -> tuple[str, Decision]:
    """§6: "this gradient descent estimator converges to ADARR only after ≈100 iterations"."""
    parts, counts = [], []
    for need in ITERATIVE:
        reached = {
            row["step"]: at_most(Estimate(row["ratio"], row["standard_error"]), 1 + _REACHED)
            for row in results[need]
        }
        # the first step that may be within 5 % of AdaRR, and the first one that is
        first = next((step for step, decision in reached.items() if decision is not False), _MAX_STEPS + 1)
        last = next((step for step, decision in reached.items() if decision), _MAX_STEPS + 1)
        counts.append((first, last))
        words = f"{first} to {last}" if first < last else f"{last}"
        parts.append(f"{f'more than {_MAX_STEPS}' if first > _MAX_STEPS else words} at {need.noise}")
    first, last = max(counts)
    holds = None
    if _ABOUT[0] <= first and last <= _ABOUT[1]:
        holds = True
    elif last < _ABOUT[0] or first > _ABOUT[1]:
        holds = False
    return f"Steps to within {percent(_REACHED)} of AdaRR: {', '.join(parts)}.", holds


def few_layers_reach_adarr(results: Results) -> tuple[str, Decision]:
    """§6: "In contrast, linear transformers typically converge in fewer than 10 layers"; here, to AdaRR."""
    parts, decisions = [], []
    for family in ("diag", "full"):
        depths = []
        for noise in MIXED:
            losses = column(results, noise)
            differences = [losses.difference(model_name(family, d, noise), "ada-ridge") for d in range(1, 8)]
            below = [is_below(difference) for difference in differences]
            depths.append(str(below.index(True) + 1) if True in below else "more than 7")
            decisions.append(True in below or below[-1])
        parts.append(f"{LABELS[family]} {', '.join(depths)}")
    return (
        f"Number of layers from which on the loss is below AdaRR's, at σ_max = 1 … 7, {{1, 3}}, {{1, 3, 5}}: "
        f"{'; '.join(parts)}. Reached with at most 7 layers: {count(decisions)}.",
        all_hold(decisions),
    )


def ten_layers_are_enough(results: Results) -> tuple[str, Decision]:
    """§6: "linear transformers typically converge in fewer than 10 layers"; here, that more do not pay."""
    parts, decisions = [], []
    for noise in DEEP:
        losses = column(results, noise)
        for family in ("diag", "full"):
            nine, twelve = (model_name(family, depth, noise) for depth in (9, 12))
            gain, excess = losses.difference(nine, twelve), losses.difference(nine, "bayes")
            share = _share(gain, excess)
            parts.append(f"{LABELS[family]} at {noise}: {short(gain)} of {short(excess)}")
            decisions.append(at_most(share, _CONVERGED))
    return (
        "Loss with 9 layers minus that with 12, of the loss with 9 layers above the Bayes floor: "
        f"{'; '.join(parts)}. The gain is at most {percent(_CONVERGED)} of it in {count(decisions)}.",
        all_hold(decisions),
    )


def _share(part: Estimate, whole: Estimate) -> Estimate:
    """A part of a whole, with the errors of both added, which is an upper bound."""
    share = part.mean / whole.mean if whole.mean else math.nan
    return Estimate(share, (part.standard_error + abs(share) * whole.standard_error) / abs(whole.mean or math.nan))


STATEMENTS = (
    Statement("§6", "Iterative AdaRR needs about 100 steps.", ITERATIVE, iterative_adarr_needs_many_steps),
    Statement(
        "§6",
        "In contrast, fewer than 10 layers of linear transformers reach AdaRR.",
        tuple(COLUMNS[noise] for noise in MIXED),
        few_layers_reach_adarr,
    ),
    Statement(
        "§6",
        f"Linear transformers converge in fewer than 10 layers (12 gain at most {percent(_CONVERGED)} of what is "
        "left).",
        tuple(COLUMNS[noise] for noise in DEEP),
        ten_layers_are_enough,
    ),
)
"""Statements about numbers of steps and layers."""
