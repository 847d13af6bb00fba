import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lintra.cli import app
from lintra.evaluation import paper
from lintra.models import Diagonal
from lintra.zoo.model_file import save

KEYS = {"method", "layers", "noise", "adjusted_loss", "standard_error"}


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def model_file(tmp_path, getkey):
    path = tmp_path / "diag.safetensors"
    save(Diagonal.random(3, key=getkey()), path, noise="choice(1,3)")
    return path


def test_baselines_as_json():
    rows = json.loads(run("baselines", "--noise", "choice(1,3)", "--sequences", 2000, "--json"))
    assert all(set(row) == KEYS for row in rows)
    losses = {row["method"]: row["adjusted_loss"] for row in rows}
    assert list(losses) == ["oracle", "ols", "const-ridge", "ada-ridge", "tuned-ridge", "iterative-ridge", "bayes"]
    assert losses["oracle"] == 0
    assert losses["bayes"] == min(loss for method, loss in losses.items() if method != "oracle")


def test_baselines_as_a_table_beside_the_paper():
    text = run("baselines", "--noise", "uniform(0,5)", "--method", "const-ridge", "--sequences", 20_000, "--tail")
    assert "const-ridge" in text
    assert "level" in text
    assert "worse than zero" in text


def test_a_published_model_as_a_table_beside_the_paper():
    text = run("evaluate", "gd++-2-choice(1,3)", "--every-layer", "--sequences", 2000)
    lines = [line.split() for line in text.splitlines() if "gd++" in line]
    assert [line[2] for line in lines] == ["1", "2"]
    assert lines[1][-2:] == [f"{paper.printed_table1()['gd++', 2, 'choice(1,3)'].value:g}", "level"]
    assert "level" not in lines[0]  # the first of two layers is not in Table 1


def test_a_baseline_that_is_undefined_says_so():
    arguments = ("baselines", "--noise", "fixed(1)", "--dim", 4, "--examples", 3, "--sequences", 100)
    rows = json.loads(run(*arguments, "--json"))
    refused = {row["method"]: row for row in rows if row["adjusted_loss"] is None}
    assert set(refused) == {"ada-ridge", "tuned-ridge", "iterative-ridge"}
    assert "needs num_examples > dim" in refused["ada-ridge"]["note"]
    assert "needs num_examples > dim" in run(*arguments)


def test_evaluate_uses_the_models_own_prior_and_length(model_file):
    rows = json.loads(run("evaluate", model_file, "--method", "bayes", "--sequences", 500, "--json"))
    assert [(row["method"], row["layers"], row["noise"]) for row in rows] == [
        ("diag", 3, "choice(1,3)"),
        ("bayes", None, "choice(1,3)"),
    ]
    assert all(set(row) == KEYS for row in rows)


def test_evaluate_after_every_layer(model_file):
    rows = json.loads(run("evaluate", model_file, "--every-layer", "--sequences", 500, "--json"))
    assert [row["layers"] for row in rows] == [1, 2, 3]


def test_evaluate_at_another_length_as_printed_and_rescaled(model_file):
    arguments = ("evaluate", model_file, "--examples", 40, "--sequences", 500, "--json")
    printed, rescaled = (json.loads(run(*arguments, *extra)) for extra in ((), ("--rescale",)))
    assert printed[0]["adjusted_loss"] != rescaled[0]["adjusted_loss"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("baselines", "--noise", "loud(1)"), "`--noise` must look like"),
        (("baselines", "--dim", "0"), "`--dim` must be a whole number of at least 1, got 0"),
        (("baselines", "--method", "lasso"), "`--method` must be one of"),
        (("baselines", "--seed", "99999999999999999999"), "`--seed` must be"),
        (("evaluate", "missing.safetensors"), "missing.safetensors"),
        (("bench", "--case", "none"), "`--case` must be one of"),
    ],
)
def test_bad_input_ends_in_one_sentence(arguments, says, complaint):
    assert says in complaint(*arguments)


def test_the_package_is_a_command():
    run = subprocess.run(
        [sys.executable, "-m", "lintra", "baselines", "--dim", "0"], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert "`--dim` must be a whole number of at least 1, got 0" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_a_context_of_nothing_is_refused_and_not_taken_for_the_default(model_file):
    with pytest.raises(ValueError, match="`num_examples` must be a whole number of at least 1, got 0"):
        run("evaluate", model_file, "--examples", 0)


def test_several_models_are_told_apart_and_explosions_are_noted(model_file, tmp_path, getkey):
    wild = tmp_path / "wild.safetensors"
    save(Diagonal.random(7, scale=30.0, key=getkey()), wild)
    text = run("evaluate", model_file, wild, "--sequences", 100)
    assert model_file.name in text
    assert wild.name in text
    assert "overflows on 1 of the sequences" in text


@pytest.mark.parametrize("option", ["--protocol", "--repetitions"])
def test_the_protocol_can_be_repeated(option, model_file):
    rows = json.loads(run("evaluate", model_file, "--sequences", 100, option, 2, "--json"))
    low, high = map(float, rows[0]["protocol_range"].split(" to "))
    assert low <= rows[0]["protocol_median"] * 1.001
    assert rows[0]["protocol_median"] <= high * 1.001


def _wait_for_cpu_seconds(pid, seconds):
    """Wait until a process has worked for so long, however busy the machine is."""
    ticks, deadline = os.sysconf("SC_CLK_TCK"), time.monotonic() + 200
    while time.monotonic() < deadline:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        if (int(fields[11]) + int(fields[12])) / ticks > seconds:
            return
        time.sleep(0.5)


def test_an_interrupt_ends_in_a_word_and_not_in_a_crash():
    """Also where the tests run in the background, which ignores interrupts unless told otherwise."""
    heed = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    options = ["baselines", "--sequences", "100000000", "--noise", "uniform(0,5)", "--method", "ols"]
    command = [sys.executable, "-c", f"{heed}; runpy.run_module('lintra', run_name='__main__')", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_for_cpu_seconds(process.pid, 10)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "interrupted" in errors


TRAIN = ("train", "--family", "gd++", "--layers", 2, "--noise", "fixed(1)", "--dim", 3, "--examples", 9)


def test_train_leaves_a_run_folder_and_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lintra.cli.train.enable_compilation_cache", lambda: None)
    (row,) = json.loads(run(*TRAIN, "--sequences", 2000, "--json"))
    assert row["file"] == "runs/gd++-2-fixed(1)-n9-d3-seed0"
    assert 0 < row["adjusted_loss"] < 0.05
    assert row["is_sound"] is True
    folder = tmp_path / row["file"]
    names = {path.name for path in folder.iterdir()} - {".lock", "checkpoint.previous.safetensors"}
    assert names == {
        "settings.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "model.safetensors",
        "result.json",
    }
    assert json.loads(run(*TRAIN, "--sequences", 2000, "--json")) == [row]
    assert "gd++" in run("evaluate", folder / "model.safetensors", "--sequences", 500)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (("--recipe", "slow"), "`--recipe` must be one of fast, paper, got 'slow'."),
        (("--objective", "luck"), "`--objective` must be one of query, truth, bayes, got 'luck'."),
        (("--learning-rate", "-1"), "`--learning-rate` must be finite and above zero, got -1.0."),
        (("--steps", "0"), "`--steps` must be a whole number of at least 1, got 0."),
        (("--out", "occupied"), "cannot be used"),
    ],
)
def test_train_refuses_bad_settings_with_a_sentence(changes, sentence, tmp_path, monkeypatch, capsys):
    from lintra.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "occupied").write_text("a file, not a folder")
    monkeypatch.setattr(sys, "argv", ["lintra", *map(str, TRAIN), *changes])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["occupied"]


def test_an_option_without_meaning_is_refused_and_not_ignored(tmp_path):
    with pytest.raises(
        ValueError, match=r"`num_steps` has no meaning for gd\+\+ with the recipe fast: leave it out"
    ):
        run(*TRAIN, "--steps", 10, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()
