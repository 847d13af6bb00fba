import json
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from lintra.models import Diagonal
from lintra.runtime.files import json_safe
from lintra.training import TrainingFailedError, train
from lintra.zoo import model_file
from training_helpers import SMALL, SPEC

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
