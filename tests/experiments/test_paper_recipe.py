import json

import pytest

from lintra.experiments import run_experiment
from lintra.experiments.paper_recipe import PaperRecipe
from lintra.problem.noisy_regression import NoisyRegression
from lintra.training import Fast, ModelSpec, Paper, train

SPEC = ModelSpec("diag", 1, NoisyRegression(2, 6, "fixed(1)"))


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    recipe = Paper(num_starts=1, num_steps=2000, batch_size=16)
    train(SPEC, recipe, folder=folder, num_sequences=10_000, throw=False)
    return folder


def test_the_curve_and_the_result_of_a_run_are_stored_without_its_folder(run_folder, tmp_path):
    path = tmp_path / "paper-recipe.json"
    stored = run_experiment(PaperRecipe(folder=str(run_folder)), path)
    assert list(stored.parts) == [f"{SPEC.name}-seed0"]
    *curve, last = stored.rows
    assert [row["step"] for row in curve] == [1000, 2000]
    assert curve[-1]["validation_loss"] > 0
    result = json.loads((run_folder / "result.json").read_text())
    assert last["adjusted_loss"] == result["adjusted_loss"]
    assert last["standard_error"] == result["standard_error"]
    assert last["settings"]["num_steps"] == 2000
    assert {frozenset(row) for row in stored.rows} == {frozenset(last)}
    assert str(run_folder) not in path.read_text()


def test_a_run_that_is_not_finished_or_of_another_recipe_is_rejected(run_folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no settings\.json: name a run folder"):
        run_experiment(PaperRecipe(folder=str(tmp_path)), tmp_path / "a.json")
    (tmp_path / "settings.json").write_bytes((run_folder / "settings.json").read_bytes())
    with pytest.raises(FileNotFoundError, match=r"has no result\.json: its run is not finished"):
        run_experiment(PaperRecipe(folder=str(tmp_path)), tmp_path / "a.json")
    train(ModelSpec("gd++", 1, SPEC.problem), Fast(), folder=tmp_path / "fast", num_sequences=1000, throw=False)
    with pytest.raises(ValueError, match="was trained with the recipe fast, not paper"):
        run_experiment(PaperRecipe(folder=str(tmp_path / "fast")), tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()
