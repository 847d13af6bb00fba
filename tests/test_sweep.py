import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from crashing import KillsItsProcess, Raises
from lintra import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.processes import ProcessExecutor
from lintra.sweep import GRIDS, Cell, Store, chain, run_sweep, shard, store, train_chain
from lintra.training import Fast
from lintra.zoo import model_file

SMALL: dict[str, Any] = {"families": ("gd++", "diag")}
QUICK = Fast(num_blocks=4)


def test_the_grid_of_table_1_is_all_of_it():
    cells = [cell for cells in GRIDS["table1"]() for cell in cells]
    assert len(set(cells)) == len(cells)
    first = [cell for cell in cells if cell.seed == 0 and cell.spec.num_layers <= 7]
    assert len(first) == 210
    seeds = [
        cell for cell in cells if str(cell.spec.problem.noise) == "uniform(0,5)" and cell.spec.family == "full"
    ]
    assert {(cell.spec.num_layers, cell.seed) for cell in seeds} == {(d, s) for d in range(1, 9) for s in range(5)}


def test_shards_share_out_all_chains():
    chains = GRIDS["table1"]()
    shares = [shard(chains, number, 3) for number in (1, 2, 3)]
    assert sorted(str(cells) for share in shares for cells in share) == sorted(map(str, chains))
    with pytest.raises(ValueError, match=r"`shard` must be from 1/N to N/N, got 4/3"):
        shard(chains, 4, 3)


def test_the_hash_follows_everything_that_the_result_follows_from():
    cells = [
        Cell(ModelSpec("diag", 1, "fixed(1)")),
        Cell(ModelSpec("diag", 2, "fixed(1)")),
        Cell(ModelSpec("diag", 1, "fixed(1)"), seed=1),
        Cell(ModelSpec("diag", 1, "fixed(1)"), recipe=Fast(objective="truth")),
    ]
    assert len({cell.digest for cell in cells}) == len(cells)
    assert cells[0].digest == Cell(ModelSpec("diag", 1, "fixed(1.0)")).digest


def test_what_is_stored_is_not_trained_again_and_what_was_cut_is_refused(tmp_path):
    cells = chain(NoisyRegression(3, 8, "fixed(1)"), 2, families=("gd++",))
    store = Store(tmp_path)
    store.prepare()
    assert train_chain(cells, str(tmp_path)) == []
    before = {cell: store.path(cell).stat().st_mtime_ns for cell in cells}
    assert train_chain(cells, str(tmp_path)) == []
    assert before == {cell: store.path(cell).stat().st_mtime_ns for cell in cells}
    assert store.seconds().keys() == {cell.digest for cell in cells}
    assert store.card(cells[0])["settings"]["min_mass"] == 1e-8
    store.path(cells[0]).write_bytes(store.path(cells[0]).read_bytes()[:-8])
    with pytest.raises(ValueError, match="not an intact safetensors file"):
        store.load(cells[0])
    content = store.path(cells[1]).read_bytes()
    assert train_chain(cells, str(tmp_path)) == []
    assert store.holds(cells[0])
    assert store.path(cells[1]).read_bytes() == content
    with (tmp_path / "journal.jsonl").open("a") as journal:
        journal.write('{"cell": "gd++-')
    assert store.seconds().keys() == {cell.digest for cell in cells}


def test_a_cell_that_fails_takes_with_it_only_those_that_start_from_it(tmp_path):
    cells = chain(NoisyRegression(3, 8, "fixed(1)"), 3, **SMALL, recipe=Raises(num_blocks=4))
    Store(tmp_path).prepare()
    failures = train_chain(cells, str(tmp_path))
    assert {failure.cell.name for failure in failures} == {"diag-2-fixed(1)-n8-d3", "diag-3-fixed(1)-n8-d3"}
    assert failures[0].reason == "RuntimeError: this cell fails"
    assert "diag-2-fixed(1)-n8-d3, which failed" in failures[1].reason
    assert len(Store(tmp_path).missing(cells)) == 2


def test_a_store_that_cannot_be_written_to_is_said_and_cells_are_named(tmp_path):
    cells = chain(NoisyRegression(3, 8, "fixed(1)"), 2, families=("gd++",))
    (tmp_path / "store").write_text("not a folder")
    failures = train_chain(cells, str(tmp_path / "store"))
    assert [failure.cell for failure in failures] == list(cells)
    assert "the store cannot be used" in failures[0].reason


def test_a_disk_that_turns_read_only_in_the_middle_and_a_second_start_that_completes(tmp_path, monkeypatch):
    cells = chain(NoisyRegression(3, 8, "fixed(1)"), 2, families=("gd++",))
    Store(tmp_path).prepare()

    real = model_file.save

    def save(model, path, **more):
        if model.num_layers == 2:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        real(model, path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(store, "save", save)
        failures = train_chain(cells, str(tmp_path))
    assert [failure.cell for failure in failures] == [cells[1]]
    assert "the store cannot be used: [Errno 30] Read-only file system" in failures[0].reason
    assert train_chain(cells, str(tmp_path)) == []
    assert Store(tmp_path).missing(cells) == []


def test_a_second_start_completes_what_crashed(tmp_path):
    crashing, sound = (
        chain(NoisyRegression(3, 8, "fixed(1)"), 3, **SMALL, recipe=recipe)
        for recipe in (Raises(num_blocks=4), QUICK)
    )
    with ProcessExecutor(1) as executor:
        failures = run_sweep([crashing], Store(tmp_path), executor)
        assert len(failures) == 2
        kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
        assert run_sweep([sound], Store(tmp_path), executor) == []
    assert len(kept) == 4
    assert kept.items() <= {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}.items()


def test_leaving_processes_by_an_exception_ends_them(tmp_path):
    started, futures = time.monotonic(), []

    def interrupted():
        with ProcessExecutor(2) as executor:
            futures.extend(executor.submit(time.sleep, 600) for _ in range(3))
            time.sleep(1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - started < 60
    assert all(future.done() for future in futures)


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


def test_shards_processes_and_a_cluster_make_the_same_bytes_even_when_a_worker_is_killed(tmp_path):
    environment = os.environ | {"LINTRA_CACHE": str(tmp_path / "cache")}  # which all of them share
    shards, processes, cluster = (tmp_path / name for name in ("shards", "processes", "cluster"))
    for part in ("1/2", "2/2"):
        command = [*_COMMAND, "--store", str(shards), "--shard", part, "--workers", "1"]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        assert "4/4 cells, 0 running, 0 failed" in finished.stderr
    _sweep_by_processes(processes, environment)
    _sweep_by_cluster(cluster, environment, tmp_path)
    assert len(_content(shards)) == 8
    assert _content(shards) == _content(processes) == _content(cluster)


def _sweep_by_processes(store: Path, environment: dict[str, str]) -> None:
    """A sweep of which one process is killed in the middle."""
    with subprocess.Popen([*_COMMAND, "--store", str(store)], env=environment) as sweep:
        _wait_for(lambda: list(store.glob("diag-1*.safetensors")))
        workers = [p for p in psutil.Process(sweep.pid).children() if "spawn_main" in " ".join(p.cmdline())]
        workers[0].send_signal(signal.SIGKILL)
        assert sweep.wait(300) == 0


def _sweep_by_cluster(store: Path, environment: dict[str, str], folder: Path) -> None:
    """A sweep by a Dask scheduler and two workers, of which one is killed in the middle."""
    dask, file = [sys.executable, "-m", "dask"], folder / "scheduler.json"
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*dask, "scheduler", *local, "--port", "0", "--scheduler-file", str(file)], env=environment
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
        str(folder),
    ]
    workers = [subprocess.Popen([*dask, "worker", *local, *joining, "--no-nanny"], env=environment) for _ in "ab"]
    try:
        command = [*_COMMAND, "--store", str(store), "--scheduler-file", str(file)]
        with subprocess.Popen(command, env=environment) as sweep:
            _wait_for(lambda: list(store.glob("diag-1*.safetensors")))
            workers[0].kill()
            assert sweep.wait(300) == 0
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def test_a_sweep_that_cannot_run_says_so(tmp_path, complaint):
    (tmp_path / "file").write_text("")
    assert "cannot be used" in complaint("sweep", "tiny", "--store", tmp_path / "file")
    assert "`--shard` must be like 2/8, got '3'" in complaint("sweep", "tiny", "--store", tmp_path, "--shard", "3")
    missing = ("--scheduler-file", tmp_path / "none.json")
    assert "none.json' is not there" in complaint("sweep", "tiny", "--store", tmp_path, *missing)


_COMMAND = [sys.executable, "-m", "lintra", "sweep", "tiny"]


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def _wait_for(condition, seconds: float = 200.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this should have happened by now"
        time.sleep(0.1)
