import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from cli_helpers import run
from lintra.models import GDPlusPlus
from lintra.problem import NoisyRegression
from lintra.training import assess

TRAIN = ("train", "--family", "gd++", "--layers", 2, "--noise", "fixed(1)", "--dim", 3, "--examples", 9)


def test_train_leaves_a_run_folder_and_resumes_where_it_was(tmp_path, monkeypatch):
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
def test_train_rejects_bad_settings_with_a_sentence(changes, sentence, tmp_path, monkeypatch, capsys):
    from lintra.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "occupied").write_text("a file, not a folder")
    monkeypatch.setattr(sys, "argv", ["lintra", *map(str, TRAIN), *changes])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["occupied"]


def test_an_option_without_meaning_is_rejected_and_not_ignored(tmp_path):
    with pytest.raises(
        ValueError, match=r"`num_steps` has no meaning for gd\+\+ with the recipe fast: leave it out"
    ):
        run(*TRAIN, "--steps", 10, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_train_says_that_a_smaller_family_was_selected(tmp_path, monkeypatch):
    remark = "The selected model is the GD++ model: the trained DIAG model has a larger tail mean (2 against 1)."
    model = GDPlusPlus(np.asarray([[[0.0, -0.3]]]), num_examples=9, dim=3).to_diagonal()
    result = replace(assess(model, NoisyRegression(3, 9, "fixed(1)"), num_sequences=100), remark=remark)
    said = []
    monkeypatch.setattr("lintra.cli.train.train_model", lambda *_, **__: result)
    monkeypatch.setattr("lintra.cli.train.terminal.print_message", said.append)
    (row,) = json.loads(run(*TRAIN, "--out", tmp_path, "--json"))
    assert (row["selected_family"], row["remark"], said) == ("gd++", remark, [])
    run(*TRAIN, "--out", tmp_path)
    assert said == [remark]
