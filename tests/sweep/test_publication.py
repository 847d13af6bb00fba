"""Publication rejects models that explode, or marks them, and measures cards again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from lintra import NoisyRegression, zoo
from lintra.evaluation import safety
from lintra.models import GDPlusPlus
from lintra.models.damping import Damping
from lintra.models.thresholds import measure_damping
from lintra.sweep import chain, publication
from lintra.sweep.publication import measure_zoo, publish
from lintra.sweep.store import Store

PROBLEM = NoisyRegression(3, 6, "uniform(0,2)")
CELLS = chain(NoisyRegression(3, 8, "fixed(1)"), 2, families=("gd++",))
SETTINGS: dict[str, Any] = {"num_sequences": 1000, "num_gate_sequences": 640}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(safety, "block_size", lambda dim: 64)


@pytest.fixture(name="mixed")
def _mixed(tmp_path):
    """A zoo of a model that low thresholds make safe, and of one whose high thresholds have no effect."""
    model = GDPlusPlus(np.full((3, 1, 2), [0.0, -1.2]), 6, 3)
    measured = measure_damping(model, PROBLEM)
    low, high = (Damping(factor * measured.rho, measured.kappa, factor * measured.trace) for factor in (0.2, 1e6))
    models = {"safe": model.store_damping(low), "wild": model.store_damping(high)}
    card = {"noise": "uniform(0,2)", "recipe": "by hand"}
    zoo.write(tmp_path / "mixed.safetensors", {name: (model, card) for name, model in models.items()})
    return zoo.Zoo(tmp_path / "mixed.safetensors")


def test_a_zoo_measured_again_keeps_weights_and_gets_cards_without_gaps(mixed, tmp_path):
    path = tmp_path / "new.safetensors"
    with ThreadPoolExecutor(1) as executor:
        measured = measure_zoo(mixed, path, executor, state_folder=tmp_path / "gate", **SETTINGS)
    assert measured.unsafe == ["wild"]
    new = zoo.Zoo(path)
    for name in ("safe", "wild"):
        card = new.card(name)
        assert card["sha256"] == mixed.card(name)["sha256"]
        assert card["damping"] == mixed.card(name)["damping"]
        assert card["recipe"] == "by hand"
        assert card["safe"] == (name == "safe")
        losses = ("adjusted_loss", "standard_error", "median", "trimmed_mean", "worst")
        assert all(isinstance(card[loss], float) and card["damped"][loss] >= 0 for loss in losses)
    assert new.card("safe")["damped"]["worst"] < new.card("safe")["worst"]
    assert new.card("wild")["damped"]["worst"] == new.card("wild")["worst"]


@pytest.mark.parametrize("allow", [False, True])
def test_a_model_that_explodes_is_rejected_unless_it_is_allowed(allow, tmp_path, monkeypatch):
    store, exploding = Store(tmp_path / "store"), CELLS[0].spec.name
    store.prepare()
    for cell in CELLS:
        model = GDPlusPlus(np.full((cell.spec.num_layers, 1, 2), [0.0, -0.1]), 8, 3)
        store.write(cell, model, {"validation_loss": 1.0}, seconds=1.0)

    def fields(models, problem, **settings):
        return {name: {"safe": name != CELLS[0].name, "adjusted_loss": 1.0} for name in models}

    monkeypatch.setattr(publication, "measure_fields", fields)
    with ThreadPoolExecutor(1) as executor:
        published = publish([CELLS], store, tmp_path / "zoo.safetensors", executor, allow_unsafe=allow)
    assert published.unsafe == [exploding]
    cards = zoo.Zoo(tmp_path / "zoo.safetensors").cards
    assert (exploding in cards) == allow
    assert len(cards) == len(CELLS) - (not allow)
    if allow:
        assert cards[exploding]["safe"] is False
