import json
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.models import Diagonal, Full
from lintra.models.base import AbstractModel
from lintra.runtime.files import json_safe
from lintra.training import AbstractRecipe, TrainingFailedError, train
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.selection import Selection
from lintra.training.stage import AbstractStage
from lintra.zoo import model_file
from training_helpers import SMALL, SPEC, InterruptAfter, InterruptedHereError

pytestmark = pytest.mark.usefixtures("short_rounds")


def test_training_lowers_the_loss_and_measures_it(undisturbed):
    folder, trained = undisturbed
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [100, 200, 300, 400]
    assert lines[-1]["validation_loss"] < lines[0]["validation_loss"]
    assert trained.loss.mean == pytest.approx(lines[-1]["validation_loss"], rel=0.2)
    assert json.loads((folder / "result.json").read_text())["adjusted_loss"] == trained.loss.mean
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["settings"]["learning_rate"] == 3e-3
    assert settings["settings"]["noise"] == "choice(1,3)"
    assert model_file.read_metadata(folder / "model.safetensors")["noise"] == "choice(1,3)"
    assert model_file.read_metadata(folder)["noise"] == "choice(1,3)"


def test_a_model_that_is_not_sound_raises_or_is_returned(tmp_path, monkeypatch):
    explodes = Diagonal(np.asarray([[[-2.0, -1.0]]] * 5), np.asarray([[[0.5, 0.1]]] * 5), 6, 3)
    monkeypatch.setattr("lintra.training.loop.run_stages", lambda stages, *_, **__: {stages[-1].name: explodes})
    with pytest.raises(TrainingFailedError, match=r"is not sound.*another seed.*`throw=False`"):
        train(SPEC, SMALL, folder=tmp_path, num_sequences=20_000)
    assert (tmp_path / "model.safetensors").exists()
    written = json.loads((tmp_path / "result.json").read_text())
    result = train(SPEC, SMALL, num_sequences=20_000, throw=False)
    assert not result.is_sound
    assert json_safe(result.to_row()) == written
    assert (written["key"], written["is_sound"], written["message"]) == (0, False, result.message)


def test_a_number_and_its_key_train_the_same_model():
    spec = replace(SPEC, family="gd++")
    first, second = (train(spec, key=key, num_sequences=1000) for key in (3, jax.random.key(3)))
    assert eqx.tree_equal(first.model, second.model)
    assert (first.loss, first.key, second.key) == (second.loss, 3, (0, 3))
    with pytest.raises(ValueError, match="`key` must be a whole number of at least 0, got -1"):
        train(spec, key=-1)


class Given(AbstractStage):
    """A stage without work, whose model is given."""

    name: str = eqx.field(static=True)
    key: jax.Array
    model: AbstractModel

    @property
    def cache_key(self):
        return self.name

    def prepare(self):
        return None

    def start(self, models, warm_starts=None):
        return jnp.zeros(())

    def advance(self, state, data):
        return state

    def progress(self, state):
        return 0, 0

    def metrics(self, state):
        return {}

    def finish(self, state):
        return self.model


@dataclass(frozen=True)
class UntrainedFull(AbstractRecipe):
    """GD++ is fitted, and FULL is not trained, so that GD++ is selected."""

    def stages(self, spec, key, warm_starts=None):
        gdpp = GDPlusPlusGrowth("gd++", key, replace(spec, num_heads=1), num_restarts=2)
        full = Given("full", key, Full.random(2, dim=3, num_examples=6))
        return [gdpp, full, Selection("selected", key, spec, ("full", "gd++"), num_blocks=4)]


def test_a_result_says_that_a_smaller_family_was_selected_also_when_resumed(tmp_path):
    spec, recipe, num_sequences = replace(SPEC, family="full"), UntrainedFull(), 1000
    result = train(spec, recipe, num_sequences=num_sequences)
    assert (result.model.family, result.selected_family) == ("full", "gd++")
    assert result.remark.startswith(
        "The selected model is the GD++ model: the trained FULL model has a larger tail mean ("
    )
    with pytest.raises(InterruptedHereError):
        train(spec, recipe, folder=tmp_path, progress=InterruptAfter(3))
    for _ in range(2):  # resumed inside of the selection, and after the end
        assert train(spec, recipe, folder=tmp_path, num_sequences=num_sequences).remark == result.remark
        written = json.loads((tmp_path / "result.json").read_text())
        assert (written["selected_family"], written["remark"]) == ("gd++", result.remark)


def test_a_result_of_the_trained_model_has_no_remark(undisturbed):
    assert (undisturbed[1].selected_family, undisturbed[1].remark) == ("diag", "")
