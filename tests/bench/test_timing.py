"""Timing, on sides that cost next to nothing. Speeds are not tested."""

import os
import time

import pytest

from lintra import bench
from lintra.bench import timing
from lintra.bench.cases import CASES


def test_sides_alternate_and_every_repetition_is_recorded():
    order = []
    sides = (lambda: order.append("ours"), lambda: order.append("reference"))
    times = timing.alternate(sides, num_repetitions=3, clock=time.perf_counter, fill_ms=1e-6)
    assert [len(record) for record in times] == [3, 3]
    assert order[4:] == ["ours", "reference"] * 3  # after a first and a trial run of each


def test_an_unknown_case_is_rejected():
    with pytest.raises(ValueError, match=r"must be one of .*gd\+\+-7.*, got 'gd-7'"):
        bench.time_case("gd-7")


def test_a_system_without_affinity_gets_a_sentence(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    assert "no way to keep a process on one processor" in (bench.use_one_processor() or "")


def test_a_case_has_the_medians_of_both_sides_and_their_ratio(monkeypatch):
    times = [[1.0, 9.0, 2.0], [6.0, 4.0, 80.0]]
    monkeypatch.setattr(timing, "alternate", lambda sides, num_repetitions: times)
    monkeypatch.setitem(CASES, "sample-1000000", lambda: None)
    row = bench.time_case("sample-1000000")
    assert row == {"case": "sample-1000000", "ours_ms": 2.0, "reference_ms": 6.0, "ratio": 3.0}
