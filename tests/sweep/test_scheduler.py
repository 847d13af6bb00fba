import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from crashing import KillsItsProcess, Raises
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.processes import ProcessExecutor
from lintra.sweep import Store, chain, run_sweep
from lintra.training import Fast
from sweep_helpers import SMALL

QUICK = Fast(num_blocks=4)

# Programs are compiled once for all sweeps of this module, since these share the cache, and so with optimisations.
_ENVIRONMENT = os.environ | {"XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false"}


def test_a_second_start_completes_what_crashed(tmp_path, monkeypatch):
    """A cell that fails takes with it only those that start from it, and these are trained later."""
    monkeypatch.setenv("XLA_FLAGS", _ENVIRONMENT["XLA_FLAGS"])
    crashing, sound = (
        chain(NoisyRegression(3, 8, "fixed(1)"), 3, **SMALL, recipe=recipe)
        for recipe in (Raises(num_blocks=4), QUICK)
    )
    with ProcessExecutor(1) as executor:
        failures = run_sweep([crashing], Store(tmp_path), executor)
        assert [failure.cell.name for failure in failures] == ["diag-2-fixed(1)-n8-d3", "diag-3-fixed(1)-n8-d3"]
        assert failures[0].reason == "RuntimeError: this cell fails"
        assert "diag-2-fixed(1)-n8-d3, which failed" in failures[1].reason
        assert len(Store(tmp_path).missing(crashing)) == 2
        kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
        assert run_sweep([sound], Store(tmp_path), executor) == []
    assert len(kept) == 4
    assert kept.items() <= {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}.items()


@pytest.mark.slow
def test_a_cell_that_kills_its_process_costs_only_its_own_chain(tmp_path):
    killing, sound = (
        chain(NoisyRegression(3, 8, "fixed(2)"), 1, **SMALL, recipe=KillsItsProcess(num_blocks=4)),
        chain(NoisyRegression(3, 8, "fixed(1)"), 2, **SMALL, recipe=QUICK),
    )
    with ProcessExecutor(2) as executor:
        failures = run_sweep([killing, sound], Store(tmp_path), executor)
    assert [(failure.cell.name, failure.reason) for failure in failures] == [
        ("diag-1-fixed(2)-n8-d3", "its worker died: exit code -9")
    ]
    assert Store(tmp_path).missing([*killing, *sound]) == [killing[1]]


@pytest.fixture(scope="module")
def by_shards(tmp_path_factory, worker_id):
    """The store of a sweep in two shards, made once and shared by all processes that test."""
    folder = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    store = folder / "shards"
    with (folder / "shards.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for part in () if store.exists() else ("1/2", "2/2"):
            command = [*_COMMAND, "--store", str(store), "--shard", part, "--workers", "1"]
            finished = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, text=True)
            assert finished.returncode == 0, finished.stderr
            assert "4/4 cells, 0 running, 0 failed" in finished.stderr
    return store


def test_shards_make_all_cells(by_shards):
    assert len(_content(by_shards)) == 8


def test_processes_make_the_same_bytes_even_when_one_is_killed(by_shards, tmp_path):
    """A sweep of which one process is killed in the middle."""
    with subprocess.Popen([*_COMMAND, "--store", str(tmp_path)], env=_ENVIRONMENT) as sweep:
        _wait_for(lambda: list(tmp_path.glob("diag-1*.safetensors")))
        workers = [p for p in psutil.Process(sweep.pid).children() if "spawn_main" in " ".join(p.cmdline())]
        workers[0].send_signal(signal.SIGKILL)
        assert sweep.wait(300) == 0
    assert _content(tmp_path) == _content(by_shards)


def test_a_cluster_makes_the_same_bytes_even_when_a_worker_is_killed(by_shards, tmp_path):
    """A sweep by a Dask scheduler and two workers, of which one is killed in the middle."""
    store = tmp_path / "store"
    dask, file = [sys.executable, "-m", "dask"], tmp_path / "scheduler.json"
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*dask, "scheduler", *local, "--port", "0", "--scheduler-file", str(file)], env=_ENVIRONMENT
    )
    _wait_for(file.exists)
    joining = [
        "--scheduler-file",
        str(file),
        "--nworkers",
        "1",
        "--nthreads",
        "1",
        "--local-directory",
        str(tmp_path),
    ]
    workers = [subprocess.Popen([*dask, "worker", *local, *joining, "--no-nanny"], env=_ENVIRONMENT) for _ in "ab"]
    try:
        command = [*_COMMAND, "--store", str(store), "--scheduler-file", str(file)]
        with subprocess.Popen(command, env=_ENVIRONMENT) as sweep:
            _wait_for(lambda: list(store.glob("diag-1*.safetensors")))
            workers[0].kill()
            assert sweep.wait(300) == 0
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    assert _content(store) == _content(by_shards)


_COMMAND = [sys.executable, "-m", "lintra", "sweep", "tiny"]


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def _wait_for(condition, seconds: float = 200.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this should have happened by now"
        time.sleep(0.1)
