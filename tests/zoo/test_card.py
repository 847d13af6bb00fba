"""Numbers on cards: infinity is a number in Python and a text in files, and never lost."""

import json
import math

import numpy as np

from lintra import zoo
from lintra.models import GDPlusPlus
from lintra.zoo.card import to_json


def test_an_infinite_loss_is_infinite_on_the_card_and_valid_json_in_the_file(tmp_path):
    model = GDPlusPlus(np.zeros((2, 1, 2)), 6, 3)
    losses = {"adjusted_loss": math.inf, "standard_error": math.inf, "median": 0.5}
    card = losses | {"worst": math.inf, "damped": losses | {"worst": 1.0}, "safe": True}
    zoo.write(tmp_path / "zoo.safetensors", {"mine": (model, card)})
    read = zoo.Zoo(tmp_path / "zoo.safetensors").card("mine")
    assert {name: read[name] for name in card} == card
    assert read["damped"]["adjusted_loss"] == math.inf
    assert "inf" in json.dumps(to_json(read), allow_nan=False)


def test_no_published_card_has_gaps():
    losses = ("adjusted_loss", "standard_error", "median", "trimmed_mean", "worst", "worse_than_zero")
    gate = ("num_exploded", "printed_num_exploded", "float32_num_exploded", "gate_sequences", "gate_seed")
    for card in zoo.published().cards.values():
        assert all(isinstance(card[name], float) and card[name] >= 0 for name in losses)
        assert all(math.isfinite(card["damped"][name]) for name in losses)
        assert all(isinstance(card[name], int) for name in gate)
        assert card["gate_sequences"] >= 10_000_000
        for form in ("", "printed_", "float32_"):
            assert card[f"{form}safe"] == (card[f"{form}num_exploded"] == 0)
