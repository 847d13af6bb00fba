"""Timing, on sides that cost next to nothing. Speeds are not tested."""

import os
import time

import numpy as np
import pytest

from lintra import bench
from lintra.bench import regressions, timing
from lintra.figures import curves
from lintra.figures.style import save_picture


def test_sides_alternate_and_every_repetition_is_recorded():
    order = []
    sides = (lambda: order.append("ours"), lambda: order.append("reference"))
    times = timing.alternate(sides, num_repetitions=3, clock=time.perf_counter, fill_ms=1e-6)
    assert [len(record) for record in times] == [3, 3]
    assert order[4:] == ["ours", "reference"] * 3  # after a first and a trial run of each


def test_an_unknown_case_is_refused():
    with pytest.raises(ValueError, match=r"must be one of .*gd\+\+-7.*, got 'gd-7'"):
        bench.time_case("gd-7")


def test_a_system_without_affinity_gets_a_sentence(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    assert "no way to keep a process on one processor" in (bench.use_one_processor() or "")


def test_costs_are_rows_that_can_be_drawn(tmp_path):
    rows = bench.measure_costs({"layers": (1,), "examples": (20,)}, num_repetitions=1)
    assert [sorted(row) for row in rows] == [
        ["axis", "diag_ms", "full_ms", "gd++_ms", "value"],
        ["axis", "sampling_ms", "value"],
    ]
    plots = bench.cost_plots(rows)
    assert [plot.xlabel for plot in plots] == ["layers", "examples n"]
    assert [[curve.label for curve in plot.curves] for plot in plots] == [["GD++", "DIAG", "FULL"], ["SAMPLING"]]
    assert plots[0].curves[2].y == [rows[0]["full_ms"]]
    save_picture(curves.draw(plots, num_columns=2), tmp_path / "costs.svg")
    assert "<svg" in (tmp_path / "costs.svg").read_text()


def test_a_case_has_the_medians_of_both_sides_and_their_ratio(monkeypatch):
    times = [[1.0, 9.0, 2.0], [6.0, 4.0, 80.0]]
    monkeypatch.setattr(timing, "alternate", lambda sides, num_repetitions: times)
    monkeypatch.setitem(timing.CASES, "sample-1000000", lambda: None)
    row = bench.time_case("sample-1000000")
    assert row == {"case": "sample-1000000", "ours_ms": 2.0, "reference_ms": 6.0, "ratio": 3.0}


def test_small_regressions_are_compared_with_what_people_use():
    rows = {row["method"]: row for row in regressions.measure_synthetic(num_tasks=64)}
    assert rows["FULL-7"]["adjusted_loss"] < rows["BayesianRidge"]["adjusted_loss"]
    assert rows["FULL-7, 32 bits"]["adjusted_loss"] == pytest.approx(rows["FULL-7"]["adjusted_loss"], rel=0.01)
    assert all(row["tasks_per_second"] > 0 for row in rows.values())
    errors = regressions.measure_real(num_subsamples=2, noise_stds=(0.0,))
    assert {row["data"] for row in errors} == {"diabetes", "wine, alcohol", "cells, mean smoothness"}
    assert all(np.isfinite(row["error"]) for row in errors)
