import json

import numpy as np
import pytest

from lintra import zoo
from untrained_zoo import untrained_model


def test_a_zoo_gives_back_what_was_put_in(small_zoo):
    kept = zoo.Zoo(small_zoo)
    again, card = kept.load("full-4-choice(1,3)"), kept.card("full-4-choice(1,3)")
    assert all(
        np.array_equal(a, b) for a, b in zip(again.matrices(), untrained_model("full", 4).matrices(), strict=True)
    )
    assert (card["family"], card["layers"], card["heads"], card["dim"]) == ("full", 4, 1, 10)


def test_a_zoo_that_was_altered_or_a_name_that_is_not_there_is_rejected(small_zoo, tmp_path):
    with pytest.raises(
        zoo.UnknownModelError, match=r"'full-4-choice\(1,4\)' is not in .* Did you mean 'full-4-choi"
    ):
        zoo.Zoo(small_zoo).load("full-4-choice(1,4)")
    content = bytearray(small_zoo.read_bytes())
    content[-3] ^= 1
    (tmp_path / "altered").write_bytes(content)
    with pytest.raises(ValueError, match="was altered"):
        zoo.Zoo(tmp_path / "altered")
    kept = zoo.Zoo(small_zoo)
    kept.cards["full-4-choice(1,3)"]["sha256"] = "0"
    with pytest.raises(ValueError, match="do not match the hash"):
        kept.load("full-4-choice(1,3)")


def test_cards_are_plain_json(small_zoo):
    assert json.loads(json.dumps(zoo.Zoo(small_zoo).cards))
