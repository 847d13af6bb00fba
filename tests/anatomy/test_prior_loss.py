from typing import Any

import numpy as np
import pytest

from anatomy_helpers import from_omegas
from lintra import NoisyRegression, evaluate
from lintra.anatomy import measure_losses
from lintra.models.damping import Damping

PROBLEM = NoisyRegression(dim=3, num_examples=6, noise="uniform(0,2)")
SIZES: Any = {"num_sequences": 4000, "key": 5}
EXPLODING = from_omegas((0.3, 0, 0, 0), (0.3, 0, 0, 0), (0, 0, -0.3, 0), num_examples=6, dim=3)


def by_name(model):
    return {row["predictor"]: row for row in measure_losses(model, PROBLEM, **SIZES)}


def test_losses_are_those_of_evaluate_and_the_excess_is_paired():
    model = from_omegas((0, 0, -0.1, 0), num_examples=6, dim=3)
    rows, measured = by_name(model), evaluate({"model": model, "bayes": "bayes"}, PROBLEM, **SIZES)
    assert list(rows) == ["as printed", "Bayes"]
    assert rows["as printed"]["adjusted_loss"] == measured.adjusted("model").mean
    assert rows["as printed"]["excess_standard_error"] == measured.difference("model", "bayes").standard_error
    assert rows["Bayes"]["standard_error"] == measured.adjusted("bayes").standard_error
    assert (rows["as printed"]["exploded"], rows["Bayes"]["excess"]) == (0, None)


def test_explosions_are_counted_above_five_d_and_thresholds_are_measured_for_a_model_without():
    rows, measured = by_name(EXPLODING), evaluate({"model": EXPLODING}, PROBLEM, **SIZES)
    assert rows["as printed"]["exploded"] == int((measured.losses() > 15).sum()) > 10
    assert rows["damped"]["thresholds"] == "measured"


def test_stored_thresholds_are_used_and_a_damped_model_is_also_measured_as_printed():
    tight = Damping(np.full(3, 1e-3), np.full(3, 1e-3), 1e-3)
    stored = by_name(EXPLODING.store_damping(tight))
    assert stored["damped"]["thresholds"] == "stored"
    assert stored["damped"]["exploded"] == 0 < stored["as printed"]["exploded"]
    assert by_name(EXPLODING.with_damping(tight)) == stored


def test_a_model_that_overflows_has_no_thresholds_and_does_not_crash():
    model = from_omegas(*[(50.0, 9, -9, 9)] * 8, num_examples=6, dim=3)
    rows = by_name(model)
    assert list(rows) == ["as printed", "Bayes"]
    assert rows["as printed"]["exploded"] == 4000
    assert rows["as printed"]["worst"] == pytest.approx(np.inf)
