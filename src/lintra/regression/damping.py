"""Models of a regression, damped for the sizes at hand."""

import numpy as np

from lintra.models.base import AbstractModel
from lintra.models.damping import Damping
from lintra.models.thresholds import measure_damping
from lintra.problem.noisy_regression import NoisyRegression

_NUM_SEQUENCES = 8192  # on which thresholds are measured that are not stored, for fewer than 40 inputs
_MIN_SEQUENCES = 256
_MAX_MEASURED = 256
_MEASURED: dict[tuple, Damping] = {}  # thresholds by parameters and problem, since a solver is made for each fit


def damp(model: AbstractModel, problem: NoisyRegression, *, is_unit_blind: bool = False) -> AbstractModel:
    """Return the damped model, with stored thresholds or, if it has none, with measured ones.

    Args:
        model: The model. One that was moved to another number of inputs has no thresholds.
        problem: The problem on which thresholds are measured.
        is_unit_blind: Whether the model reads labels divided by their root mean square. Default: `False`.
    """
    if model.damping is not None or model.stored_damping is not None:
        return model.with_damping()
    parameters = tuple(np.asarray(value).tobytes() for value in model.parameters().values())
    sizes = problem.dim, problem.num_examples, str(problem.noise), is_unit_blind
    key = model.family, model.num_examples, *sizes, *parameters
    if key not in _MEASURED:
        if len(_MEASURED) >= _MAX_MEASURED:
            _MEASURED.clear()
        # Fewer for many inputs, since a sequence is a matrix of d² entries, and norms vary less.
        num_sequences = max(_NUM_SEQUENCES // max(problem.dim // 20, 1) ** 2, _MIN_SEQUENCES)
        settings = {"num_sequences": num_sequences, "is_unit_blind": is_unit_blind}
        _MEASURED[key] = measure_damping(model, problem, **settings)
    return model.with_damping(_MEASURED[key])
