import numpy as np
import pytest

from lintra.bench import regressions


def test_small_regressions_are_compared_with_what_people_use():
    rows = {row["method"]: row for row in regressions.measure_synthetic(num_tasks=64)}
    assert rows["FULL-7"]["adjusted_loss"] < rows["BayesianRidge"]["adjusted_loss"]
    assert rows["FULL-7, 32 bits"]["adjusted_loss"] == pytest.approx(rows["FULL-7"]["adjusted_loss"], rel=0.01)
    assert all(row["tasks_per_second"] > 0 for row in rows.values())
    errors = regressions.measure_real(num_subsamples=2, noise_stds=(0.0,))
    assert {row["data"] for row in errors} == {"diabetes", "wine, alcohol", "cells, mean smoothness"}
    assert all(np.isfinite(row["error"]) for row in errors)


def test_every_number_of_the_regressions_has_a_standard_error():
    rows = [*regressions.measure_lengths(8, (4, 16)), *regressions.measure_real(2, noise_stds=(1.0,))]
    assert all(np.isfinite(row["standard_error"]) for row in rows)
    assert {row["method"] for row in rows if "examples" in row} == {
        "specialists",
        "BayesianRidge",
        "RidgeCV",
        "least squares",
    }
    assert all(row["fallbacks"] in (0, 1, 2) for row in rows if row["method"].startswith("lintra"))
