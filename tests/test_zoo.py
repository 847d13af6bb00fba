"""The published models are all there, are what their names say, and are as good as their cards say."""

from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import lintra
from lintra import zoo
from lintra.cli import app
from lintra.evaluation import paper
from lintra.models import families, tokens
from lintra.regression.regressor import LinearTransformerRegressor
from lintra.sweep import GRIDS

CELLS = [f"{v}-{d}-{n}" for v in families.PAPER_FAMILIES for d in range(1, 8) for n in paper.NOISES]


def test_every_cell_of_table_1_and_figures_5_7_and_8_is_published():
    names = set(zoo.names())
    assert set(CELLS) <= names
    seeds = {f"{v}-{d}-uniform(0,5)-seed{s}" for v in ("diag", "full") for d in range(1, 9) for s in range(5)}
    assert seeds <= names
    figure8 = {cell.name for chain in GRIDS["figure8"]() for cell in chain}
    assert figure8 <= names


@pytest.mark.parametrize("name", ["full-7-uniform(0,5)", "diag-5-choice(1,3)", "gd++-3-uniform(0,0)"])
def test_a_published_model_follows_eq_3_as_printed(name):
    model = zoo.load(name)
    P, Q = model.matrices()
    assert isinstance(P, np.ndarray)
    assert P.shape == Q.shape == (model.num_layers, 1, 11, 11)
    rng = np.random.default_rng(0)
    x, query = rng.normal(size=(20, 10)), rng.normal(size=10)
    y = x @ rng.normal(size=10) + rng.normal(size=20)
    last = tokens.forward(*map(jnp.asarray, (P, Q, x, y, query)))[-1]
    predicted = model.predict(lintra.GramStatistics.from_data(x, y), query)
    assert float(-last[-1, -1]) == pytest.approx(float(predicted), rel=1e-8)


@pytest.mark.parametrize("name", ["full-4-uniform(0,5)", "diag-7-choice(1,3,5)", "gd++-7-uniform(0,7)"])
def test_a_card_says_how_good_a_model_is(name):
    card, model = zoo.card(name), zoo.load(name)
    problem = lintra.NoisyRegression(card["dim"], card["context"], card["noise"])
    measured = lintra.evaluate({"model": model}, problem, num_sequences=65_536, key=jax.random.key(77))
    loss = measured.adjusted("model")
    error = (loss.standard_error**2 + card["standard_error"] ** 2) ** 0.5
    assert abs(loss.mean - card["adjusted_loss"]) < 4 * error
    assert card["sequences"] == 1_000_000
    assert card["seconds"] > 0
    assert card["recipe"] == "fast"


def test_the_best_of_five_seeds_is_one_of_them():
    card = zoo.card("full-7-uniform(0,5)")
    seeds = [zoo.card(f"full-7-uniform(0,5)-seed{seed}") for seed in range(5)]
    assert card["seeds"] == 5
    assert card["sha256"] == seeds[card["seed"]]["sha256"]
    assert card["selection_loss"] == min(seed["selection_loss"] for seed in seeds)


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
    for place in (run_folder, f"{run_folder}/", run_folder / "model.safetensors"):
        model, noise = zoo.find(str(place))
        assert (model.num_layers, noise) == (2, "choice(1,3)")
        assert np.array_equal(lintra.load(place).matrices()[0], model.matrices()[0])
        assert np.array_equal(lintra.solve(x, y, model=place), by_name)
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
    places = {"run": run_folder, "data": tmp_path / "x.npz", "out": tmp_path / "w.npz"}
    shown = CliRunner().invoke(app, [part.format(**places) for part in command], catch_exceptions=False)
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
