"""Measured losses as rows, of which tables on the screen and JSON lists are made, beside the printed losses."""

import math
from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import Array, Key

from lintra.display import Row
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.comparison import PROTOCOL_SEQUENCES, Comparison
from lintra.evaluation.estimate import DOMINATING_SHARE, ProtocolQuantiles
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Progress

_MARK = "†"
COLUMNS = {
    "file": "file",
    "noise": "noise",
    "method": "method",
    "layers": "layers",
    "adjusted_loss": "adjusted loss",
    "standard_error": "± s.e.",
    "mark": "",
    "paper": "paper",
    "verdict": "against the paper",
    "protocol_median": "protocol median",
    "protocol_range": "5–95 %",
    "median": "median",
    "trimmed_mean": "trimmed mean",
    "top_ten_share": "top ten share",
    "num_exploded": "exploded",
    "worst": "worst",
    "worse_than_zero": "worse than zero",
    "note": "note",
}


def loss_row(
    method: str, num_layers: int | None, measured: Comparison, name: str, layer: int | None = None, *, tail: bool
) -> Row:
    """Return one predictor's adjusted loss, whether few sequences dominate it, and its tail if asked for."""
    cells = head(method, num_layers, measured.problem) | measured.adjusted(name, layer).as_adjusted_loss()
    of_name = measured.tail(name, layer)
    cells["is_dominated"] = of_name.is_dominated
    if not math.isfinite(cells["adjusted_loss"]):
        share = float(np.mean(~np.isfinite(measured.losses(name, layer))))
        cells["note"] = f"overflows on {share:.2g} of the sequences"
    if tail:
        cells |= vars(of_name) | {"num_exploded": measured.num_exploded(name, layer)}
    return cells


def mark_rows(rows: list[Row]) -> tuple[list[Row], str]:
    """Mark the means of a table that few sequences dominate.

    Args:
        rows: Rows of losses.

    Returns:
        The rows with a mark where there is one, and the footnote that explains it, empty without marks.
    """
    marked = [row | {"mark": _MARK if row.get("is_dominated") else None} for row in rows]
    footnote = (
        f"{_MARK} Few sequences dominate this mean: the ten largest have more than "
        f"{100 * DOMINATING_SHARE:.0f} % of the sum. --tail shows more."
    )
    return marked, footnote if any(row["mark"] for row in marked) else ""


def head(method: str, num_layers: int | None, problem: NoisyRegression) -> Row:
    """Return what a row is about."""
    return {"method": method, "layers": num_layers, "noise": str(problem.noise)}


def undefined_row(name: str, problem: NoisyRegression, reason: str) -> Row:
    """Return the row of a baseline that is not defined for a problem."""
    return head(name, None, problem) | {
        "adjusted_loss": None,
        "standard_error": None,
        "is_dominated": None,
        "note": reason,
    }


def protocol_quantiles(
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    *,
    num_repetitions: int,
    key: Key[Array, ""],
    progress: Progress,
) -> dict[str, ProtocolQuantiles]:
    """Repeat the paper's protocol, each time on fresh sequences, and return its quantiles by name."""
    means: dict[str, list[float]] = {name: [] for name in predictors}
    shares: dict[str, list[float]] = {name: [] for name in predictors}
    for own_key in jax.random.split(key, num_repetitions):
        measured = evaluate(
            predictors, problem, num_sequences=PROTOCOL_SEQUENCES, protocol=True, key=own_key, progress=progress
        )
        for name in predictors:
            means[name].append(float(measured.protocol_means(name)[0]))
            shares[name].append(measured.protocol(name).top_share)
    return {
        name: ProtocolQuantiles.from_means(np.asarray(values), top_share=float(np.max(shares[name])))
        for name, values in means.items()
    }


def add_protocol(rows: list[Row], quantiles: Mapping[str, ProtocolQuantiles]) -> None:
    """Add the median and the 5–95 % range of the paper's protocol to rows, by method."""
    for cells in rows:
        if cells["method"] in quantiles:
            of_method = quantiles[cells["method"]]
            cells["protocol_median"] = of_method.median
            cells["protocol_range"] = f"{of_method.low:.4g} to {of_method.high:.4g}"


def has_printed_loss(problem: NoisyRegression, method: str, num_layers: int | None) -> bool:
    """Whether Table 1 has a loss of this method for this problem."""
    size = problem.dim, problem.num_examples, problem.is_isotropic
    return size == (10, 20, True) and (method, num_layers, str(problem.noise)) in paper.printed_table1()


def add_printed_loss(cells: Row, quantiles: ProtocolQuantiles) -> None:
    """Add the printed loss to a row that has one, and the verdict on the measured one."""
    printed = paper.printed_table1()[cells["method"], cells["layers"], cells["noise"]]
    cells["paper"] = f"{printed.value:g}"
    cells["verdict"] = str(paper.verdict(quantiles, printed))
