"""Measured losses as rows: what tables on the screen and JSON lists are made of, beside the paper's figures."""

import math
from typing import Any

import numpy as np
from jaxtyping import Array, Key

from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate, repeat_protocol
from lintra.evaluation.comparison import Comparison
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Track

Row = dict[str, Any]
"""Values by column."""

COLUMNS = {
    "file": "file",
    "noise": "noise",
    "method": "method",
    "layers": "layers",
    "adjusted_loss": "adjusted loss",
    "standard_error": "± s.e.",
    "paper": "paper",
    "verdict": "against the paper",
    "protocol_median": "protocol median",
    "protocol_range": "5–95 %",
    "median": "median",
    "trimmed_mean": "trimmed mean",
    "top_ten_share": "top ten share",
    "worst": "worst",
    "worse_than_zero": "worse than zero",
    "note": "note",
}


def row(
    method: str, layers: int | None, comparison: Comparison, name: str, problem: NoisyRegression, tail: bool
) -> Row:
    """One predictor's adjusted loss, and its tail if asked for."""
    cells = head(method, layers, problem) | comparison.adjusted(name).as_adjusted_loss()
    if not math.isfinite(cells["adjusted_loss"]):
        share = float(np.mean(~np.isfinite(comparison.losses[name])))
        cells["note"] = f"overflows on {share:.2g} of the sequences"
    return cells | (vars(comparison.tail(name)) if tail else {})


def head(method: str, layers: int | None, problem: NoisyRegression) -> Row:
    """What a row is about."""
    return {"method": method, "layers": layers, "noise": str(problem.noise)}


def refusal(name: str, problem: NoisyRegression, sentence: str) -> Row:
    """A baseline that is not defined for a problem, and why."""
    nothing = {"adjusted_loss": None, "standard_error": None}
    return head(name, None, problem) | nothing | {"note": sentence}


def repeat(
    rows: list[Row],
    predictors: dict[str, AbstractPredictor],
    problem: NoisyRegression,
    repetitions: int,
    key: Key[Array, ""],
    track: Track,
) -> None:
    """Add the median and the 5–95 % range of the paper's protocol repeated."""
    if not repetitions:
        return
    repeated = repeat_protocol(predictors, problem, num_repetitions=repetitions, key=key, track=track)
    for cells in rows:
        if cells["method"] in repeated:
            low, high = repeated[cells["method"]].interval
            cells["protocol_median"] = repeated[cells["method"]].median
            cells["protocol_range"] = f"{low:.4g} to {high:.4g}"


def compare_with_paper(
    rows: list[Row],
    predictors: dict[str, AbstractPredictor],
    problem: NoisyRegression,
    sequences: int,
    key: Key[Array, ""],
) -> None:
    """Add the paper's figure, and how far it is in standard errors of the paper's own protocol.

    The protocol's error is estimated on no more sequences than were asked for, and scaled to 100,000.
    """
    if (problem.dim, problem.context) != (10, 20) or sequences < 2:
        return
    printed = {name: paper.table1().get((name, None, str(problem.noise))) for name in predictors}
    shown = {name: predictors[name] for name, figure in printed.items() if figure is not None}
    if not shown:
        return
    sample = min(sequences, 100_000)
    protocol = evaluate(shown, problem, num_sequences=sample, sampled_query=True, key=key)
    for cells in rows:
        figure = printed.get(cells["method"])
        if figure is None:
            continue
        protocol_error = protocol.adjusted(cells["method"]).standard_error * (sample / 100_000) ** 0.5
        error = math.hypot(protocol_error, cells["standard_error"])
        away = max(abs(cells["adjusted_loss"] - figure.value) - figure.rounding, 0.0)
        cells["paper"] = f"{figure.value:g}"
        cells["verdict"] = "level" if away <= 3 * error else f"{away / error:.1f} s.e. away"
