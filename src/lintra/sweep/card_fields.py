"""What the cards of models say about losses and safety: measured on the same fresh sequences for one problem."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxtyping import Array, Key

from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.comparison import Comparison
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.sweep.gate import judge_models


def measure_fields(
    models: Mapping[str, AbstractModel],
    problem: NoisyRegression,
    *,
    num_sequences: int,
    num_gate_sequences: int,
    key: Key[Array, ""],
    state_folder: Path | None = None,
    progress: Progress = SILENT,
) -> dict[str, dict[str, Any]]:
    """Measure models of one problem for their cards.

    Args:
        models: Models by name, with the thresholds that are published with them.
        problem: The problem of their training.
        num_sequences: Number of fresh sequences for losses.
        num_gate_sequences: Number of sequences of the gate.
        key: Randomness of the sequences for losses.
        state_folder: Folder for the counts of the gate, from which an interrupted one is resumed. `None`
            (default): write nothing to disk.
        progress: Told after every block of sequences. Default: not shown.

    Returns:
        Fields of a card by name: losses as printed, losses as used under `damped`, and those of the gate.
    """
    # As printed and damped on the same sequences, so that these are drawn and the oracle is computed once.
    forms = {name: model.without_damping() for name, model in models.items()}
    used = {name: f"{name} damped" for name, model in models.items() if model.stored_damping is not None}
    forms |= {used[name]: models[name].with_damping() for name in used}
    losses = evaluate(forms, problem, num_sequences=num_sequences, key=key, progress=progress)
    fields: dict[str, dict[str, Any]] = {
        name: _losses(losses, name) | {"sequences": num_sequences} for name in models
    }
    for name in used:
        fields[name]["damped"] = _losses(losses, used[name])
    gate = judge_models(
        models, problem, num_sequences=num_gate_sequences, state_folder=state_folder, progress=progress
    )
    return {name: field | gate[name].to_card() for name, field in fields.items()}


def _losses(comparison: Comparison, name: str) -> dict[str, float]:
    """Return mean, standard error and tail. The error of an infinite mean is infinite."""
    loss, tail = comparison.adjusted(name), comparison.tail(name)
    return {
        "adjusted_loss": loss.mean,
        "standard_error": math.inf if math.isnan(loss.standard_error) else loss.standard_error,
        "median": tail.median,
        "trimmed_mean": tail.trimmed_mean,
        "worst": tail.worst,
        "worse_than_zero": tail.worse_than_zero,
    }
