"""The loss of a model without one of the four ω of a layer."""

import numpy as np
from jaxtyping import Float

from lintra.anatomy.prior_loss import count_exploded, median
from lintra.anatomy.structure import OMEGAS
from lintra.arguments import KeyLike
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel, damped_as
from lintra.models.full import Full
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress

_ROUNDING = 1e-9  # of a distance of weights, which are of size one


def ablate(model: AbstractModel, layer: int, omega: str) -> Full:
    """Return the model without one ω of one layer, counted from 1. Damping stays as it is.

    For other families than DIAG, ω_xy stands for what labels do to inputs, the upper right block of `Σₖ Pₖ G Qₖ`,
    and so on.

    >>> import jax
    >>> from lintra.models import Diagonal
    >>> model = Diagonal.random(2, key=jax.random.key(0))
    >>> ablate(model, 1, "yy").num_heads
    2
    """
    P, Q = model.matrices()
    if not 1 <= layer <= len(P) or omega not in OMEGAS:
        raise ValueError(
            f"`layer` and `omega` must be from 1 to {len(P)} and one of {OMEGAS}, got {layer}, {omega!r}."
        )
    inputs = np.append(np.ones(model.dim), 0.0)
    rows = {"x": inputs[:, None], "y": 1 - inputs[:, None]}
    columns = {"x": inputs, "y": 1 - inputs}
    new_p = np.concatenate([P * rows["x"], P * rows["y"]], axis=1)  # a head for each kind of row
    new_q = np.concatenate([Q, Q], axis=1)
    heads = slice(0, P.shape[1]) if omega[0] == "x" else slice(P.shape[1], None)
    new_q[layer - 1, heads] *= 1 - columns[omega[1]]
    with in_64_bits():
        return damped_as(Full.from_matrices(new_p, new_q, model.num_examples), model)


def ablation(
    model: AbstractModel,
    problem: NoisyRegression,
    *,
    num_sequences: int = 65_536,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> list[Row]:
    """Measure the loss without each ω of each layer, and the difference to the model's, on the same sequences.

    Args:
        model: The model.
        problem: Where the sequences come from.
        num_sequences: Number of sequences.
        key: Randomness, a whole number or a key.
        progress: Told after every block of sequences.

    Returns:
        A row for each ω that is read: those of inputs in the last layer never reach the output. `cost` is the mean
        difference. Medians, and the number of sequences on which it explodes, are there since a few sequences may
        dominate the means. `changed` is the share of sequences on which the loss changes by more than rounding: if
        it is zero, the ω has no effect.
    """
    parts = [(layer, omega) for layer in range(1, model.num_layers + 1) for omega in OMEGAS]
    parts = [(layer, omega) for layer, omega in parts if layer < model.num_layers or omega[0] == "y"]
    names = {(layer, omega): f"without {omega} of layer {layer}" for layer, omega in parts}
    ablated = {names[part]: ablate(model, *part) for part in parts}
    measured = evaluate(
        {"model": model, **ablated}, problem, num_sequences=num_sequences, key=key, progress=progress
    )
    rows = []
    for (layer, omega), name in names.items():
        cost, middle = measured.difference(name, "model"), median(measured.losses(name))
        rows.append(
            {"layer": layer, "omega": omega}
            | measured.adjusted(name).as_adjusted_loss()
            | {"cost": cost.mean, "cost_standard_error": cost.standard_error}
            | {"median": middle.mean, "median_standard_error": middle.standard_error}
            | {"exploded": count_exploded(measured.losses(name), problem.dim)}
            | {"changed": _changed_share(measured.losses(name), measured.losses("model"))}
        )
    return rows


def _changed_share(values: Float[np.ndarray, " n"], others: Float[np.ndarray, " n"]) -> float:
    """Return the share of sequences on which two losses `½‖w − w_σ‖²` differ by more than rounding."""
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        is_equal = np.abs(np.sqrt(values) - np.sqrt(others)) <= _ROUNDING * np.maximum(1, np.sqrt(others))
    return float(np.mean(~(is_equal | (values == others))))
