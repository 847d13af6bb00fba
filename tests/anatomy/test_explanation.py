import numpy as np
import pytest

from anatomy_helpers import KEY
from lintra.anatomy import explain
from lintra.models import Diagonal
from lintra.models.damping import Damping


def test_an_explanation_says_what_the_numbers_say():
    p = np.asarray([[[-1.0, -1.0]], [[0.0, -1.0]]])
    q = np.asarray([[[0.5, 0.004]], [[0.5, -0.002]]])
    explanation = explain(Diagonal(p, q, 20, 10), "uniform(0,5)", num_sequences=8192, key=KEY)
    words = "\n".join(explanation.sentences)
    assert "Layer 1: labels and the prediction so far shrink (ω_yy < 0)" in words
    assert "Layer 2: labels and the prediction so far stretch (ω_yy > 0)" in words
    assert "as §5.2 says" in words
    assert "both negative in layer 1:" in words
    assert len(explanation.ablation) == 6
    assert explanation.damping == []
    assert "damped" not in words
    assert all(explanation.tables().values())


def test_an_explanation_says_how_often_each_layer_is_damped():
    model = Diagonal(np.asarray([[[0.0, -0.5]], [[0.0, -0.5]]]), np.asarray([[[0.5, 0.0]], [[0.5, 0.0]]]), 20, 10)
    # Inputs do not change, so that the second layer, with half of the threshold, is damped where the first is not.
    stored = model.store_damping(Damping(np.asarray([75.0, 37.5])))
    explanation = explain(stored, "uniform(0,5)", num_sequences=2000, key=KEY)
    context, first, second = explanation.damping
    words = "\n".join(explanation.sentences)
    share, error = (100 * context[name] for name in ("damped_share", "standard_error"))
    assert 0 < share < 10
    assert f"The context is scaled on {share:.2g} ± {error:.2g} % of sequences, by at most 1." in words
    assert "Layer 1 is damped on none of 2,000 sequences." in words
    assert (first["damped_share"], second["largest_divisor"]) == (0, pytest.approx(2))
    assert second["damped_share"] > 0.99
    assert "Layer 2 is damped on 100 ± " in words
    assert "% of sequences, by at most 2." in words
    assert "`model.with_damping()` damps it as follows" in words
    damped = explain(stored.with_damping(), "uniform(0,5)", num_sequences=2000, key=KEY)
    assert damped.damping == explanation.damping
    assert not any("damps it as follows" in sentence for sentence in damped.sentences)
