import json

from cli_helpers import run
from lintra.experiments import EXPERIMENTS, stored_path
from lintra.training import ModelSpec, Paper, train


def test_an_experiment_of_a_finished_run_is_stored(tmp_path):
    spec = ModelSpec("gd++", 1, "fixed(1)")
    train(spec, Paper(num_starts=1, num_steps=1000, batch_size=16), folder=tmp_path / "run", num_sequences=1000)
    run("experiment", "paper-recipe", "--run", tmp_path / "run", "--out", tmp_path / "rows.json")
    assert list(json.loads((tmp_path / "rows.json").read_text())["parts"]) == [f"{spec.name}-seed0"]


def test_an_experiment_that_cannot_run_says_so(tmp_path, error_message):
    assert "must be one of equation-8" in error_message("experiment", "equation-9")
    assert "`--run` is the folder for paper-recipe, and for it alone" in error_message(
        "experiment", "starts", "--run", tmp_path
    )
    assert "has no settings.json" in error_message("experiment", "paper-recipe", "--run", tmp_path)
    published = stored_path("starts")
    assert "was stored with seed = 0, not 1" in error_message(
        "experiment", "starts", "--seed", 1, "--out", published
    )


def test_stored_experiments_have_the_settings_of_today():
    for name, kind in EXPERIMENTS.items():
        if stored_path(name).exists() and name != "paper-recipe":
            stored = json.loads(stored_path(name).read_text())
            assert stored["settings"] == json.loads(json.dumps(kind().settings()))
            assert list(stored["parts"]) == kind().parts()
