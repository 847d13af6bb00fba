"""The clocks, on sides that cost next to nothing; figures of speed are not tested."""

import os
import time

import numpy as np
import pytest

from lintra import bench
from lintra.bench import regressions, timing


def test_sides_alternate_and_every_repetition_is_recorded():
    order = []
    sides = (lambda: order.append("ours"), lambda: order.append("reference"))
    times = timing.alternate(sides, repetitions=3, clock=time.perf_counter, fill=1e-6)
    assert [len(record) for record in times] == [3, 3]
    assert order[4:] == ["ours", "reference"] * 3  # after a first and a trial run of each


def test_an_unknown_case_is_refused():
    with pytest.raises(ValueError, match=r"must be one of .*gd\+\+-7.*, got 'gd-7'"):
        bench.run("gd-7")


def test_a_system_without_affinity_gets_a_sentence(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    assert "no way to keep a process on one processor" in (bench.use_one_processor() or "")


def test_costs_are_rows_that_can_be_drawn(tmp_path):
    rows = bench.costs({"layers": (1,), "context": (20,)}, repetitions=1)
    assert [sorted(row) for row in rows] == [
        ["axis", "diag_ms", "full_ms", "gd++_ms", "value"],
        ["axis", "sampling_ms", "value"],
    ]
    bench.draw(rows, tmp_path / "costs.svg")
    assert "<svg" in (tmp_path / "costs.svg").read_text()


def test_small_regressions_are_compared_with_what_people_use():
    rows = {row["method"]: row for row in regressions.synthetic(tasks=64)}
    assert rows["FULL-7"]["adjusted_loss"] < rows["BayesianRidge"]["adjusted_loss"]
    assert rows["FULL-7, 32 bits"]["adjusted_loss"] == pytest.approx(rows["FULL-7"]["adjusted_loss"], rel=0.01)
    assert all(row["tasks_per_second"] > 0 for row in rows.values())
    errors = regressions.real(subsamples=2, noise=(0.0,))
    assert {row["data"] for row in errors} == {"diabetes", "wine, alcohol", "cells, mean smoothness"}
    assert all(np.isfinite(row["error"]) for row in errors)
