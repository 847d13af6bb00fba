import json

import pytest

from cli_helpers import run
from lintra.evaluation import paper
from lintra.models import Diagonal
from lintra.zoo.model_file import save

KEYS = {"method", "layers", "noise", "adjusted_loss", "standard_error", "is_dominated"}


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
    rejected = {row["method"]: row for row in rows if row["adjusted_loss"] is None}
    assert set(rejected) == {"ada-ridge", "tuned-ridge", "iterative-ridge"}
    assert "needs num_examples > dim" in rejected["ada-ridge"]["note"]
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


def test_no_examples_are_rejected_and_not_taken_for_the_default(model_file):
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
