"""The loss of a model on its own noise prior, as printed and damped, beside the Bayes floor."""

import numpy as np
from jaxtyping import Float

from lintra.arguments import KeyLike
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.robustness import is_exploded
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress

PRINTED, DAMPED, BAYES = "as printed", "damped", "Bayes"
"""What is measured."""


def measure_losses(
    model: AbstractModel,
    problem: NoisyRegression,
    *,
    num_sequences: int = 65_536,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> list[Row]:
    """Measure the adjusted loss of a model and of the Bayes predictor on the same fresh sequences.

    Args:
        model: The model, damped or not.
        problem: Where the sequences come from.
        num_sequences: Number of sequences.
        key: Randomness, a whole number or a key.
        progress: Told after every block of sequences.

    Returns:
        Rows for the model as printed, for the damped one and for the Bayes predictor. `exploded` is the number of
        sequences whose adjusted loss is above 5d or not finite; `excess` the loss above the Bayes predictor's. A
        model without thresholds has a damped row if it explodes: thresholds are then measured on the problem
        (`thresholds` is `measured`), unless it overflows there.
    """
    printed, damped, thresholds = model.without_damping(), None, None
    if (damping := model.damping or model.stored_damping) is not None:
        damped, thresholds = printed.with_damping(damping), "stored"
    sizes = {"num_sequences": num_sequences, "key": key}
    measured = evaluate(
        {PRINTED: printed, BAYES: "bayes"} | ({DAMPED: damped} if damped is not None else {}),
        problem,
        progress=progress,
        **sizes,
    )
    rows = {name: _row(measured, name) for name in (PRINTED, DAMPED, BAYES) if name in measured.names}
    if damped is None and rows[PRINTED]["exploded"]:
        try:
            with np.errstate(all="ignore"):
                damped, thresholds = printed.with_damping(problem), "measured"
        except ValueError:  # it overflows, so that it has no range
            return list(rows.values())
        rows[DAMPED] = _row(evaluate({DAMPED: damped, BAYES: "bayes"}, problem, **sizes), DAMPED)
    if DAMPED in rows:
        rows[DAMPED]["thresholds"] = thresholds
    return [rows[name] for name in (PRINTED, DAMPED, BAYES) if name in rows]


def _row(measured: Comparison, name: str) -> Row:
    values = measured.losses(name)
    excess = measured.difference(name, BAYES)
    middle = median(values)
    return {
        "predictor": name,
        **measured.adjusted(name).as_adjusted_loss(),
        "excess": None if name == BAYES else excess.mean,
        "excess_standard_error": None if name == BAYES else excess.standard_error,
        "median": middle.mean,
        "median_standard_error": middle.standard_error,
        "worst": float(values.max()),
        "exploded": count_exploded(values, measured.problem.dim),
        "sequences": len(values),
        "thresholds": None,
    }


def count_exploded(values: Float[np.ndarray, " n"], dim: int) -> int:
    """Return the number of adjusted losses that are above 5d or not finite."""
    return int(np.asarray(is_exploded(values, dim)).sum())


def median(values: Float[np.ndarray, " n"]) -> Estimate:
    """Return the median and its standard error, half the distance of the values √n/2 ranks below and above it.

    >>> median(np.arange(101.0))
    Estimate(mean=50.0, standard_error=5.0)
    """
    ordered, count = np.sort(values), len(values)
    ranks = count / 2 + np.array([-0.5, 0.5]) * count**0.5
    low, high = ordered[np.clip(ranks.astype(int), 0, count - 1)]
    with np.errstate(invalid="ignore"):
        return Estimate(float(np.median(ordered)), float((high - low) / 2))
