"""What commands and the library reject before they work, and in which words."""

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest
from jax.errors import JaxRuntimeError

import lintra
from lintra.cli import main, terminal
from lintra.evaluation.adjusted_loss import require_memory
from lintra.runtime import memory
from lintra.runtime.cluster import connect
from lintra.runtime.processes import WorkerDiedError
from lintra.sweep import GRIDS, shard
from lintra.training import ModelSpec
from lintra.training.checkpoints import RunFolder

MODEL = "diag-4-uniform(0,5)"
NOISE = ("--noise", "fixed(1)")
HUGE = 10**12


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine of 24 GB, in a folder in which `occupied` is a file."""
    monkeypatch.setattr(memory, "available", lambda: 24 * 10**9)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "occupied").write_text("a file, not a folder")


def _forbid_work(monkeypatch):
    """Fail where a command begins to measure, to train or to start processes."""

    def work(*_, **__):
        raise AssertionError("work has begun")

    for module in ("adjusted_loss", "bayes_excess"):
        monkeypatch.setattr(f"lintra.evaluation.{module}.map_blocks", work)
    monkeypatch.setattr("lintra.training.loop.run_stages", work)
    monkeypatch.setattr("lintra.runtime.processes.ProcessExecutor.submit", work)
    monkeypatch.setattr("lintra.cli.bench.measure_costs", work)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("report", "--sequences", -5), "`--sequences` must be a whole number of at least 1, got -5."),
        (("report", "--seed", -1), "`--seed` must be a whole number from 0 to 2^63 - 1, got -1."),
        (("report", "--out", "occupied"), "'occupied' cannot be used: File exists."),
        (("report", "--zoo", "none.safetensors"), "'none.safetensors' cannot be used: No such file or directory."),
        (("figure", 9), "`NUMBER` must be one of 1, 2, 3,"),
        (("figure", 1, "--sequences", 0), "`--sequences` must be a whole number of at least 1, got 0."),
        (("figure", 1, "--out", "occupied"), "'occupied' cannot be used"),
        (("publish", "zoo.safetensors", "--sequences", 0), "`--sequences` must be"),
        (("gate", "zoo.safetensors", "--gate-sequences", 0), "`--gate-sequences` must be"),
        (("publish", "zoo.safetensors", "--store", "none"), "`--store` 'none' is not there. Train it first"),
        (("publish", "occupied/zoo.safetensors", "--store", "."), "'occupied' cannot be used"),
        (("publish", "zoo.safetensors", "--grid", "none"), "`--grid` must be one of table1, figure8, tiny"),
        (("sweep", "none"), "`GRID` must be one of table1, figure8, tiny, got 'none'."),
        (("sweep", "tiny", "--workers", 0), "`--workers` must be a whole number of at least 1, got 0."),
        (("sweep", "tiny", "--layers", -2), "`--layers` must be a whole number of at least 1, got -2."),
        (("sweep", "tiny", "--scheduler-file", "none.json"), "`--scheduler-file` 'none.json' is not there."),
        (("train", "--family", "full", "--layers", 0, *NOISE), "`--layers` must be"),
        (("train", "--family", "full", "--layers", 1, "--heads", 0, *NOISE), "`--heads` must be"),
        (("train", "--family", "full", "--layers", 1, "--sequences", 0, *NOISE), "`--sequences` must be"),
        (("train", "--family", "huge", "--layers", 1, *NOISE), "`--family` must be one of"),
        (("baselines", "--noise", "fixed(1)", "--noise", "loud(1)"), "`--noise` must look like"),
        (("baselines", "--examples", 10**30), f"`--examples` must be below 2^63, got {10**30}."),
        (("baselines", "--repetitions", -1), "`--protocol` must be a whole number of at least 0, got -1."),
        (("baselines", "--sequences", 0), "`--sequences` must be"),
        (("evaluate", MODEL, "nosuch"), "`MODEL` 'nosuch' is not in the zoo"),
        (("evaluate", MODEL, "--examples", 0), "`--examples` must be a whole number of at least 1, got 0."),
        (("evaluate", MODEL, "--method", "lasso"), "`--method` must be one of"),
        (("explain", MODEL, "--sequences", 0), "`--sequences` must be"),
        (("explain", MODEL, "--noise", "loud(1)"), "`--noise` must look like"),
        (("explain", MODEL, "--out", "occupied"), "'occupied' cannot be used"),
        (("export", MODEL, "--format", "none"), "`--format` must be one of"),
        (("export", MODEL, "--out", "occupied/x.py"), "'occupied' cannot be used"),
        (("explore", "--measure", "--sequences", 0), "`--sequences` must be"),
        (("explore", "--measure", "--out", "occupied/x.html"), "'occupied' cannot be used"),
        (("theory", "none"), "`CLAIM` must be one of"),
        (("theory", "lemma-4.3", "--out", "occupied"), "'occupied' cannot be used"),
        (("bench", "--case", "none"), "`--case` must be one of"),
        (("bench", "--plot", "occupied/x.svg"), "'occupied' cannot be used"),
        (("bench", "--plot", "x.txt"), "`--plot` must end in .svg, .png or .pdf"),
    ],
)
def test_bad_settings_are_rejected_before_any_work(arguments, says, error_message, monkeypatch):
    _forbid_work(monkeypatch)
    assert says in error_message(*arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("baselines", "--dim", 100_000), "`--dim` 100000 needs about 80 GB for one Gram matrix"),
        (("baselines", "--dim", 20_000), "`--dim` 20000 needs about 256 GB for 16 Gram matrices at once"),
        (("baselines", "--repetitions", HUGE, *NOISE), f"`--protocol` {HUGE} needs about 64 TB for the keys"),
        (("baselines", "--sequences", HUGE, *NOISE), f"`--sequences` {HUGE} needs about 48 TB for the losses"),
        (("evaluate", MODEL, "--sequences", HUGE), f"`--sequences` {HUGE} needs about 8 TB for the losses"),
        (("explain", MODEL, "--sequences", HUGE), f"`--sequences` {HUGE} needs about 152 TB"),
        (("report", "--sequences", HUGE), f"`--sequences` {HUGE} needs about 400 TB"),
        (("figure", 1, "--sequences", HUGE), f"`--sequences` {HUGE} needs about"),
        (("publish", "zoo.safetensors", "--sequences", HUGE, "--store", "."), f"`--sequences` {HUGE} needs about"),
        (("explore", "--measure", "--sequences", HUGE), f"`--sequences` {HUGE}"),
        (("sweep", "tiny", "--layers", 100_000), "`--layers` 100000 needs about 1.28 TB for the normal equations"),
        (("sweep", "tiny", "--shard", f"1/{10**11}"), "`--shard` must have at most 2 parts"),
    ],
)
def test_sizes_beyond_memory_are_rejected_with_what_they_need(arguments, says, error_message, monkeypatch):
    _forbid_work(monkeypatch)
    assert says in error_message(*arguments)


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (("--layers", 100_000), "`--layers` 100000 needs about 1.28 TB for the normal equations of the fit"),
        (("--layers", 2, "--dim", 100_000), "`--dim` 100000 needs about 80 GB for one Gram matrix"),
        (("--layers", 2, "--sequences", HUGE), f"`--sequences` {HUGE} needs about 8 TB for the losses"),
    ],
)
def test_training_beyond_memory_is_rejected(family, changes, says, error_message, tmp_path):
    assert says in error_message("train", "--family", family, *changes, *NOISE, "--out", "run")
    assert not (tmp_path / "run").exists()


def test_a_model_too_deep_for_a_file_is_rejected_before_it_is_trained(error_message, tmp_path):
    command = ("train", "--family", "diag", "--layers", 1001, "--recipe", "paper", *NOISE, "--out", "run")
    assert "`--layers` must be from 1 to 1,000 in a file, got 1,001." in error_message(*command)
    assert not (tmp_path / "run").exists()


def test_a_file_for_weights_that_cannot_be_written_is_rejected_before_any_work(
    error_message, tmp_path, monkeypatch
):
    monkeypatch.setattr("lintra.regression.files.read", lambda *_, **__: pytest.fail("work was done"))
    (tmp_path / "file").touch()
    assert "file" in error_message("solve", "examples.csv", "--out", tmp_path / "file" / "weights.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "examples.csv").touch()
    says = error_message("solve", tmp_path / "examples.csv", "--out", tmp_path / "folder.csv")
    assert "is a folder: give the name of a file." in says


def test_text_of_files_is_no_markup_on_the_terminal(capsys):
    terminal.print_table([{"method": "[red]x[bold]\x1b[31m"}], "[blue]title\x1b[0m", {"method": "method"})
    printed = capsys.readouterr().out
    assert "[red]x[bold]\\x1b[31m" in printed
    assert "[blue]title\\x1b[0m" in printed
    terminal.print_error("\x1b[2Jgone")
    assert "\\x1b[2Jgone" in capsys.readouterr().err


def test_sizes_are_rejected_together_where_each_alone_would_fit(error_message):
    full = ("train", "--family", "full", *NOISE, "--out", "run")
    assert "`--dim` 200 needs about 127 GB for a pool" in error_message(*full, "--layers", 2, "--dim", 200)
    says = "`--layers` 500, `--heads` 1000, `--dim` 10 and `--starts` 8 need about 38.7 GB for the parameters"
    assert says in error_message(*full, "--layers", 500, "--heads", 1000)
    paper = ("--recipe", "paper", "--layers", 50_000, "--starts", 50)
    assert "`--layers` 50000, `--dim` 10 and `--starts` 50 need about" in error_message(*full, *paper)


def test_what_fits_is_accepted_and_an_unknown_memory_rejects_nothing(monkeypatch):
    problem = lintra.NoisyRegression(dim=10, num_examples=20)
    require_memory(problem, 10**9, 1)  # 8 GB
    with pytest.raises(ValueError, match="`num_sequences` 1000000000 needs about 32 GB"):
        require_memory(problem, 10**9, 4)
    monkeypatch.setattr(memory, "available", lambda: None)
    require_memory(problem, 10**9, 4)


def test_the_memory_of_this_machine_is_known_or_unknown(monkeypatch):
    monkeypatch.undo()
    found = memory.available()
    assert found is None or found > 10**8
    monkeypatch.delattr("os.sysconf", raising=False)
    assert memory.available() is None


@pytest.mark.parametrize(
    ("option", "says"), [("--sequences", "Unable to allocate"), ("--repetitions", "XLA could not allocate")]
)
def test_lack_of_memory_ends_in_one_sentence(option, says, monkeypatch, capsys):
    """Real errors of NumPy and of XLA, asked for more than a process can address."""
    monkeypatch.setattr(memory, "available", lambda: None)
    small = ("--method", "ols", "--dim", "1", "--examples", "2", "--sequences", "10", *NOISE)
    monkeypatch.setattr(sys, "argv", ["lintra", "baselines", *small, option, str(10**14)])
    with pytest.raises(SystemExit, match="1"):
        main()
    errors = capsys.readouterr().err
    assert errors.startswith("lintra: There is not enough memory: ")
    assert says in errors
    assert errors.count("\n") == 1


def test_library_errors_name_arguments():
    no_key: Any = lintra.evaluate
    with pytest.raises(ValueError, match=r"^`num_sequences` must be"):
        lintra.evaluate({}, lintra.NoisyRegression(), num_sequences=0, key=no_key)
    with pytest.raises(ValueError, match=r"^`shard` must have at most 2 parts"):
        shard(GRIDS["tiny"](), 1, 10**11)
    with pytest.raises(FileNotFoundError, match=r"^`scheduler_file` 'none.json' is not there"):
        connect(scheduler_file=Path("none.json"))


def test_training_takes_a_spec_and_a_recipe():
    with pytest.raises(TypeError, match=r"^`spec` must be a ModelSpec, such as ModelSpec\(.*\), got 'full'\.$"):
        lintra.train("full")  # pyright: ignore[reportArgumentType] # on purpose
    with pytest.raises(TypeError, match=r"`recipe` must be a recipe, such as Fast\(\) or Paper\(\), got 'fast'"):
        lintra.train(ModelSpec("full", 1, "fixed(1)"), "fast")  # pyright: ignore[reportArgumentType] # on purpose


def test_a_folder_of_another_run_is_named_as_an_argument_and_as_an_option(tmp_path, error_message):
    RunFolder(tmp_path / "run", {"num_layers": 3}, {}).close()
    with pytest.raises(ValueError, match=r"^`folder` '.*run' holds a run with num_layers = 3, not 2"):
        RunFolder(tmp_path / "run", {"num_layers": 2}, {})
    command = ("train", "--family", "gd++", "--layers", 2, *NOISE, "--out", tmp_path / "run")
    assert f"`--out` '{tmp_path / 'run'}' holds a run with num_layers = 3, not 2." in error_message(*command)


def test_a_missing_package_is_an_import_error_and_one_sentence(monkeypatch, error_message):
    real = builtins.__import__

    def without_dask(name, *rest, **more):
        if name == "distributed":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_dask)
    with pytest.raises(ImportError, match=r"A cluster needs Dask: pip install 'lintra\[cluster\]'"):
        connect("tcp://localhost:1")
    assert "A cluster needs Dask" in error_message("sweep", "tiny", "--scheduler", "tcp://localhost:1")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (JaxRuntimeError("INTERNAL: no such luck\nin detail"), "lintra: XLA failed: INTERNAL: no such luck\n"),
        (WorkerDiedError("exit code -9"), "lintra: A process of this command was killed (exit code -9), perhaps"),
    ],
)
def test_a_failure_of_the_machine_ends_in_one_sentence_with_code_1(error, says, monkeypatch, capsys):
    def fail(_):
        raise error

    monkeypatch.setattr("lintra.cli.report.zoo.read", fail)
    monkeypatch.setattr(sys, "argv", ["lintra", "zoo"])
    with pytest.raises(SystemExit, match="1"):
        main()
    errors = capsys.readouterr().err
    assert errors.startswith(says)
    assert errors.count("\n") == 1


def test_a_defect_keeps_its_traceback(monkeypatch):
    def defect(_):
        raise TypeError("a defect")

    monkeypatch.setattr("lintra.cli.report.zoo.read", defect)
    monkeypatch.setattr(sys, "argv", ["lintra", "zoo"])
    with pytest.raises(TypeError, match="a defect"):
        main()
