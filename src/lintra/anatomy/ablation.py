"""What each of the four flows of each layer is worth: the loss without it."""

from typing import Any

import numpy as np
from jaxtyping import Array, Key

from lintra.anatomy.structure import NAMES
from lintra.evaluation.adjusted_loss import evaluate
from lintra.models.base import AbstractModel
from lintra.models.full import Full
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Track


def without(model: AbstractModel, layer: int, flow: str) -> Full:
    """The model without one flow of one layer, counted from 1: for DIAG, with that ω set to zero.

    The flow `xy` is what labels do to inputs, the upper right block of `Σₖ Pₖ G Qₖ`.

    >>> import jax
    >>> from lintra.models import Diagonal
    >>> model = Diagonal.random(2, key=jax.random.key(0))
    >>> without(model, 1, "yy").num_heads
    2
    """
    P, Q = model.matrices()
    if not 1 <= layer <= len(P) or flow not in NAMES:
        raise ValueError(
            f"`layer` and `flow` must be from 1 to {len(P)} and one of {NAMES}, got {layer}, {flow!r}."
        )
    inputs = np.append(np.ones(model.dim), 0.0)
    rows = {"x": inputs[:, None], "y": 1 - inputs[:, None]}
    columns = {"x": inputs, "y": 1 - inputs}
    new_p = np.concatenate([P * rows["x"], P * rows["y"]], axis=1)  # a head for each kind of row
    new_q = np.concatenate([Q, Q], axis=1)
    own = slice(0, P.shape[1]) if flow[0] == "x" else slice(P.shape[1], None)
    new_q[layer - 1, own] *= 1 - columns[flow[1]]
    return Full.from_matrices(new_p, new_q, model.context)


def ablation(
    model: AbstractModel,
    problem: NoisyRegression,
    *,
    num_sequences: int = 65_536,
    key: Key[Array, ""],
    track: Track | None = None,
) -> list[dict[str, Any]]:
    """The loss without each flow of each layer, and by how much it is worse, on the same sequences.

    Means that a few exploding sequences own say little, so medians are there as well.
    """
    places = [(layer, flow) for layer in range(1, model.num_layers + 1) for flow in NAMES]
    places = [(layer, flow) for layer, flow in places if layer < model.num_layers or flow[0] == "y"]
    cut = {f"{layer}/{flow}": without(model, layer, flow) for layer, flow in places}
    measured = evaluate({"whole": model, **cut}, problem, num_sequences=num_sequences, key=key, track=track)
    rows = []
    for layer, flow in places:
        name = f"{layer}/{flow}"
        cost = measured.difference(name, "whole")
        rows.append(
            {"layer": layer, "omega": flow}
            | measured.adjusted(name).as_adjusted_loss()
            | {"cost": cost.mean, "cost_standard_error": cost.standard_error}
            | {"median": measured.tail(name).median}
        )
    return rows
