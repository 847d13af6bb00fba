import json
import warnings

import numpy as np
import pytest

from anatomy_helpers import KEY, from_omegas
from lintra import zoo
from lintra.anatomy import explain
from lintra.models import FAMILIES, Diagonal, Full
from lintra.models.damping import Damping
from lintra.runtime.files import to_json

EXPLODING = from_omegas((0.1, 0.03, -0.1, 0.03), (0.1, 0.03, -0.1, 0.03), num_examples=6, dim=3)


def explained(model, noise="uniform(0,5)", num_sequences=8192):
    """An explanation without any warning of NumPy, and its words."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        explanation = explain(model, noise, num_sequences=num_sequences, key=KEY)
    json.loads(to_json(vars(explanation)))
    words = "\n".join(explanation.sentences)
    assert "nan" not in words
    return explanation, words


def test_an_explanation_says_what_the_numbers_say():
    p = np.asarray([[[-1.0, -1.0]], [[0.0, -1.0]]])
    q = np.asarray([[[0.5, 0.004]], [[0.5, -0.002]]])
    explanation, words = explained(Diagonal(p, q, 20, 10))
    printed, bayes = explanation.losses
    assert explanation.sentences[0].startswith("Its adjusted loss on 8,192 fresh sequences of uniform(0,5) is ")
    assert printed["adjusted_loss"] > bayes["adjusted_loss"]
    assert "Layer 1 shrinks labels" in words
    assert "Layer 2 stretches labels" in words
    assert "In layer 1 ω_yy is negative, and labels shrink, and more at σ = 5 than at σ = 1, as §5.2 says" in words
    assert len(explanation.ablation) == 6
    assert explanation.damping == []
    assert "damped" not in words
    assert all(explanation.tables().values())


def test_a_model_that_explodes_is_announced_first_and_ranks_nothing():
    explanation, _ = explained(EXPLODING, "choice(1,3)")
    assert explanation.sentences[0] == (
        f"Warning: as printed it explodes on {explanation.losses[0]['exploded']:,} of 8,192 fresh sequences of "
        "choice(1,3): their adjusted loss is above 5d = 15 or not finite. Damped with thresholds measured on its "
        f"prior it explodes on {explanation.losses[1]['exploded']:,} of them."
    )
    assert explanation.sentences[1].startswith("Its adjusted loss")
    assert "a mean that exploded sequences dominate" in explanation.sentences[1]
    assert "most:" not in explanation.sentences


def test_damping_that_cures_explosions_is_said_to():
    tight = Damping(np.full(2, 1e-3), np.full(2, 1e-3), 1e-3)
    model = EXPLODING.store_damping(tight)
    explanation, _ = explained(model, "choice(1,3)")
    assert explanation.sentences[0].endswith("Damped with its stored thresholds it explodes on none of them.")
    damped, _ = explained(model.with_damping(), "choice(1,3)")
    assert damped.sentences[0] == explanation.sentences[0]
    assert "None of the sequences explodes" in damped.sentences[1]


def test_zeros_are_described_without_a_preconditioner_or_a_noise_level():
    zeros = np.zeros((2, 1, 4, 4))
    _, words = explained(Full(zeros, zeros, 6), "fixed(1)")
    assert "All of P and Q are zero." in words
    assert "Layers 1 and 2 leave labels" in words
    assert "no preconditioner" in words
    assert "It does not do ridge regression" in words
    assert "acts as if" not in words
    assert "ω_yx of layer 2 and ω_yy of layer 2 change no prediction" in words
    assert "needs" not in words


def test_random_weights_of_full_are_not_those_of_figure_4():
    _, words = explained(Full.random(2, dim=6, num_examples=12, num_heads=2, scale=0.05, key=KEY), "choice(1,3)")
    assert "(mean of 4 matrices" in words
    assert "not diagonal-heavy, other than Figure 4 shows" in words
    assert "as Figure 4 shows" not in words
    assert "σ = 3" in words


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_random_weights_of_every_family_are_described(family, num_layers):
    _, words = explained(FAMILIES[family].random(num_layers, scale=0.1, key=KEY))
    assert ("It has one layer" in words) == (num_layers == 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("full-7-uniform(0,5)", ["have made a preconditioner", "as Figure 4 shows", "as §5.2 says"], ["Warning"]),
        ("diag-4-uniform(0,5)", ["have made a preconditioner", "as §5.2 says", "as §5.3 says"], ["Figure 4"]),
        ("gd++-4-uniform(0,1)", ["have made a preconditioner", "σ = 0.2"], ["§5.2", "§5.3", "σ = 5", "shrink"]),
    ],
)
def test_published_models_are_described(name, present, absent):
    _, words = explained(zoo.load(name), name.split("-", 2)[2])
    assert all(text in words for text in present)
    assert not any(text in words for text in absent)


def test_an_explanation_says_how_often_each_layer_is_damped():
    model = Diagonal(np.asarray([[[0.0, -0.5]], [[0.0, -0.5]]]), np.asarray([[[0.5, 0.0]], [[0.5, 0.0]]]), 20, 10)
    # Inputs do not change, so that the second layer, with half of the threshold, is damped where the first is not.
    stored = model.store_damping(Damping(np.asarray([75.0, 37.5])))
    explanation = explain(stored, "fixed(1)", num_sequences=2000, key=KEY)
    context, first, second = explanation.damping
    words = "\n".join(explanation.sentences)
    share, error = (100 * context[name] for name in ("damped_share", "standard_error"))
    assert 0 < share < 10
    assert f"The context is scaled on {share:.2g} ± {error:.2g} % of 2,000 sequences, by at most 1." in words
    assert "Layer 1 is damped on none of 2,000 sequences." in words
    assert (first["damped_share"], second["largest_divisor"]) == (0, pytest.approx(2))
    assert second["damped_share"] > 0.99
    assert "Layer 2 is damped on 100 ± " in words
    assert "% of 2,000 sequences, by at most 2." in words
    assert "`model.with_damping()` damps it as follows" in words
    damped = explain(stored.with_damping(), "fixed(1)", num_sequences=2000, key=KEY)
    assert damped.damping == explanation.damping
    assert not any("damps it as follows" in sentence for sentence in damped.sentences)
