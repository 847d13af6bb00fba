import numpy as np

from anatomy_helpers import KEY
from lintra.anatomy import explain
from lintra.models import Diagonal


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
