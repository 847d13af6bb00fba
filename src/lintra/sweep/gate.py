"""The gate on models that are to be published: as used, as printed, and as used in 32 bits."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lintra.arguments import random_key
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.safety import NUM_SEQUENCES, SEED, GateCounts, count_explosions, fingerprint
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress

_FORMS = _USED, _PRINTED, _SINGLE = "as used", "as printed", "in 32 bits"


@dataclass(frozen=True)
class GateResult:
    """Whether a model explodes.

    Attributes:
        used: Counts of the model as it is used: damped, if it has thresholds, in 64 bits.
        printed: Counts of the model without damping, in 64 bits.
        single: Counts of the model as used, in 32 bits.
        seed: Seed of the sequences.
    """

    used: GateCounts
    printed: GateCounts
    single: GateCounts
    seed: int

    def to_card(self) -> dict[str, Any]:
        """Return the fields of a card."""
        return {
            "safe": self.used.is_safe,
            "num_exploded": self.used.num_exploded,
            "gate_worst": self.used.worst,
            "printed_safe": self.printed.is_safe,
            "printed_num_exploded": self.printed.num_exploded,
            "printed_gate_worst": self.printed.worst,
            "float32_safe": self.single.is_safe,
            "float32_num_exploded": self.single.num_exploded,
            "float32_gate_worst": self.single.worst,
            "gate_sequences": self.used.num_sequences,
            "gate_seed": self.seed,
            "gate_candidates": 1,
        }


def judge_models(
    models: Mapping[str, AbstractModel],
    problem: NoisyRegression,
    *,
    num_sequences: int = NUM_SEQUENCES,
    key: int = SEED,
    state_folder: Path | None = None,
    progress: Progress = SILENT,
) -> dict[str, GateResult]:
    """Count on how many sequences of their problem models explode, each in three forms.

    Models of equal weights and thresholds are computed once.

    Args:
        models: Models by name, with the thresholds that are published with them.
        problem: The problem of their training.
        num_sequences: Number of sequences, rounded up to whole blocks. Default: ten million.
        key: Seed of the sequences. Default: that of all published models.
        state_folder: Folder for the counts so far, in a file for these models. An interrupted gate is resumed from
            it. `None` (default): write nothing to disk.
        progress: Told after every block.

    Returns:
        The counts by name.
    """
    used = {
        name: model if model.stored_damping is None else model.with_damping() for name, model in models.items()
    }
    prints = {name: fingerprint(model) for name, model in used.items()}
    first = {name_print: name for name, name_print in reversed(prints.items())}  # one name for equal models
    forms: dict[str, AbstractModel] = {}
    for name in first.values():
        forms[f"{name} {_USED}"] = forms[f"{name} {_SINGLE}"] = used[name]
        forms[f"{name} {_PRINTED}"] = used[name].without_damping()
    gate_key = fold_in_words(
        random_key(key), "gate", str(problem.noise), str(problem.dim), str(problem.num_examples)
    )
    counts = count_explosions(
        forms,
        problem,
        num_sequences=num_sequences,
        single=frozenset(name for name in forms if name.endswith(_SINGLE)),
        key=gate_key,
        state_file=None if state_folder is None else state_folder / _file_name(forms, problem, key),
        progress=progress,
    )
    return {
        name: GateResult(*(counts[f"{first[prints[name]]} {form}"] for form in _FORMS), seed=key)
        for name in models
    }


def _file_name(forms: Mapping[str, AbstractModel], problem: NoisyRegression, key: int) -> str:
    """Return a name that changes with everything that the counts depend on, except their number."""
    parts = [repr(problem), str(key)]
    parts += [f"{name} {fingerprint(forms[name])}" for name in sorted(forms)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return f"{problem.noise}-n{problem.num_examples}-d{problem.dim}-{digest}.json"
