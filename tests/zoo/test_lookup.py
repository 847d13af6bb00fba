"""Models are found by name, by file and by run folder."""

from importlib import resources

import numpy as np
import pytest
from typer.testing import CliRunner

import lintra
from lintra import zoo
from lintra.cli import app
from lintra.regression.regressor import LinearTransformerRegressor


def test_a_model_is_found_by_name_or_by_file(tmp_path):
    model, noise = zoo.find("diag-2-choice(1,3)")
    assert (model.num_layers, noise) == (2, "choice(1,3)")
    lintra.save(model, tmp_path / "mine.safetensors", noise=noise)
    again, noise = zoo.find(str(tmp_path / "mine.safetensors"))
    assert np.array_equal(again.matrices()[0], model.matrices()[0])
    with pytest.raises(zoo.UnknownModelError, match="Did you mean"):
        zoo.find("diag-2-choice(1,4)")


@pytest.fixture
def run_folder(tmp_path):
    """A run folder that is finished, as `training` leaves it."""
    folder = tmp_path / "runs" / "diag-2-choice(1,3)-seed0"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text("{}")
    lintra.save(zoo.load("diag-2-choice(1,3)"), folder / "model.safetensors", noise="choice(1,3)")
    return folder


def contexts():
    """Three contexts of the problem that the model was trained for."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 20, 10)), rng.normal(size=(3, 10))
    return x, np.einsum("bnd,bd->bn", x, w) + rng.normal(size=(3, 20))


def test_a_run_folder_is_taken_for_the_model_in_it(run_folder):
    x, y = contexts()
    by_name = lintra.solve(x, y, model="diag-2-choice(1,3)")
    for path in (run_folder, f"{run_folder}/", run_folder / "model.safetensors"):
        model, noise = zoo.find(str(path))
        assert (model.num_layers, noise) == (2, "choice(1,3)")
        assert np.array_equal(lintra.load(path).matrices()[0], model.matrices()[0])
        assert np.array_equal(lintra.solve(x, y, model=path), by_name)
    regressor = LinearTransformerRegressor(model=str(run_folder)).fit(x[0], y[0])
    expected = LinearTransformerRegressor(model="diag-2-choice(1,3)").fit(x[0], y[0])
    assert np.array_equal(regressor.coef_, expected.coef_)


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "{run}", "--sequences", "1024"),
        ("explain", "{run}", "--sequences", "1024"),
        ("export", "{run}"),
        ("solve", "{data}", "--model", "{run}", "--out", "{out}"),
    ],
)
def test_commands_take_run_folders(command, run_folder, tmp_path):
    x, y = contexts()
    np.savez(tmp_path / "x.npz", x=x, y=y)
    paths = {"run": run_folder, "data": tmp_path / "x.npz", "out": tmp_path / "w.npz"}
    shown = CliRunner().invoke(app, [part.format(**paths) for part in command], catch_exceptions=False)
    assert shown.exit_code == 0
    if command[0] == "export":
        assert '"""diag-2-choice(1,3)-seed0: an algorithm' in shown.output


def test_a_folder_without_a_trained_model_says_so(run_folder, tmp_path):
    (run_folder / "model.safetensors").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"seed0' is a run that is not finished: train it to its end first"
    ):
        zoo.find(str(run_folder))
    with pytest.raises(FileNotFoundError, match=r"is a folder that holds no trained model, 'model\.safetensors'"):
        lintra.load(tmp_path)


def test_errors_of_the_library_name_arguments(tmp_path, monkeypatch):
    for name in ("none.safetensors", "runs/none"):
        with pytest.raises(FileNotFoundError, match=rf"^`model` '{name}' is not there\.$"):
            zoo.find(name)
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"`file` 'other\.safetensors' is missing") as caught:
        zoo.published("other.safetensors")
    assert "--" not in str(caught.value)
