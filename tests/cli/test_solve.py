import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from context_files import csv
from lintra import solve
from lintra.cli import app


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet"])
def test_the_command_solves_files(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("lintra.cli.solve.enable_compilation_cache", lambda: None)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 12, 3)), rng.normal(size=(4, 3))
    y = np.einsum("bnd,bd->bn", x, w)
    path, out = tmp_path / f"tasks.{ending}", tmp_path / f"weights.{ending}"
    columns = {"group": np.repeat(["d", "b", "a", "c"], 12), "y": y.ravel()}
    table = pd.DataFrame(columns | {name: x[..., i].ravel() for i, name in enumerate(("x1", "task", "x3"))})
    if ending == "npz":
        np.savez(path, x=x, y=y)
    else:
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    command = ["solve", str(path), "--out", str(out), "--task", "group"]
    for options, standard in (([], True), (["--no-standardise", "--no-fit-intercept"], False)):
        CliRunner().invoke(app, command + options, catch_exceptions=False)
        if ending == "npz":
            found = np.load(out)["weights"]
        else:
            table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
            assert list(table["group"]) == ["d", "b", "a", "c"]
            found = table[["x1", "task", "x3", "intercept"][: len(table.columns) - 1]].to_numpy()
        expected = solve(x, y, standardise=standard, fit_intercept=standard)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_command_standardises_and_centres_and_says_why_the_bayes_predictor_answered(tmp_path, monkeypatch):
    monkeypatch.setattr("lintra.cli.solve.enable_compilation_cache", lambda: None)
    rng, (count, n) = np.random.default_rng(0), (60, 30)
    x, w = 100 + [1e-2, 20.0, 500.0] * rng.normal(size=(count, n, 3)), rng.normal(size=(count, 3))
    y = np.einsum("bnd,bd->bn", (x - 100) / [1e-2, 20.0, 500.0], w) + 3 + rng.normal(size=(count, n))
    np.savez(tmp_path / "tasks.npz", x=x, y=y)
    command = ["solve", str(tmp_path / "tasks.npz"), "--out", str(tmp_path / "weights.npz")]
    assert "not reliable" not in CliRunner().invoke(app, command, catch_exceptions=False).output
    weights = np.load(tmp_path / "weights.npz")["weights"]
    fitted = np.einsum("bnd,bd->bn", x, weights[:, :3]) + weights[:, 3:]
    assert np.mean((y - fitted) ** 2) < 1.1
    x = rng.normal(size=(count, n, 1)) + 0.2 * rng.normal(size=x.shape)
    labels = np.einsum("bnd,bd->bn", x, w) + 1e-3 * rng.normal(size=y.shape)
    np.savez(tmp_path / "tasks.npz", x=10 * x, y=labels)
    output = CliRunner().invoke(app, command, catch_exceptions=False).output
    assert f"On {count} of {count} contexts (the first is number 0) the model is not reliable" in output
    assert "Cause: inputs are strongly correlated (60); remedy: drop inputs" in output
    output = CliRunner().invoke(app, [*command, "--no-standardise"], catch_exceptions=False).output
    assert "remedy: pass `--standardise` or divide them" in output


def test_a_column_of_intercepts_needs_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr("lintra.cli.solve.enable_compilation_cache", lambda: None)
    path = csv(tmp_path, "task,intercept,y\na,1,2\na,3,4\n")
    result = CliRunner().invoke(app, ["solve", str(path), "--out", str(tmp_path / "w.csv")])
    assert "adds a column 'intercept' to the weights, but there is a column of that name" in str(result.exception)
    assert not (tmp_path / "w.csv").exists()


@pytest.mark.parametrize(
    ("content", "out", "sentence"),
    [
        ("task,x1,y\n1,2,3\n1,x,3\n", "w.csv", "Column 'x1' of"),
        ("group,x1,y\n1,2,3\n", "w.csv", "has no column 'task'; it has group, x1, y."),
        ("task,y\n1,2\n", "w.csv", "must have at least one column besides 'task' and 'y'."),
        ("task,x1,y\n1,2,3\n", "w.txt", "`--out` must end in one of .npz, .csv, .parquet, got"),
        ("task,x1,y\n1,2,3\n", "examples.csv", "`--out` must be another file than the contexts"),
    ],
)
def test_the_command_rejects_files_in_a_sentence(tmp_path, error_message, content, out, sentence):
    assert sentence in error_message("solve", csv(tmp_path, content), "--out", tmp_path / out)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"examples.csv": content}


def test_the_command_reads_the_same_in_every_locale(tmp_path):
    path = csv(tmp_path, "task,größe,y\nJosé,1,2\nJosé,2,4\nJosé,4,8\n")
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "lintra", "solve", str(path), "--out", str(tmp_path / "w.csv")]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | ascii_only)
    assert run.returncode == 0, run.stderr
    header, row = (tmp_path / "w.csv").read_text(encoding="utf-8").splitlines()
    assert (header, row.split(",")[0]) == ("task,größe,intercept", "José")
