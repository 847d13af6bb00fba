from dataclasses import replace

import jax
import numpy as np
import pytest

from lintra.models import Diagonal, GDPlusPlus
from lintra.models.families import smallest_family
from lintra.training import WarmStarts
from lintra.training.selection import IGNORED_PROBABILITY, Selection, selection_remark
from training_helpers import KEY, SPEC


def test_the_selection_counts_what_is_rare_but_not_what_is_rarer():
    selection = Selection("selected", KEY, SPEC, ("a", "b"), num_blocks=2)
    calm = Diagonal(np.asarray([[[0.0, -0.3]]]), np.asarray([[[0.3, 0.3]]]), 6, 3)
    state = selection.start({"a": calm, "b": calm})
    sequences = 8192
    for probability, counts in ((1e-8, False), (1e-5, True)):
        worst = state.means.worst.at[1, 0, 0].set(1e9)
        importance = state.means.importance.at[1, 0, 0].set(probability * sequences)
        before = replace(state, means=replace(state.means, worst=worst, importance=importance))
        seen = selection.advance(before, selection.prepare())
        means = seen.means.mean(IGNORED_PROBABILITY)
        assert (means[1, 0] > 100) == counts
        assert means[1, 1] == pytest.approx(means[0, 1], rel=0.2)
        assert selection.best(seen) == 1  # as the simpler one, where both are as good


CALM = Diagonal(np.asarray([[[0.0, -0.3]]] * 2), np.asarray([[[0.6, 0.1]]] * 2), 6, 3)
LAZY = Diagonal(np.asarray([[[0.0, -0.01]]] * 2), np.asarray([[[0.3, 0.1]]] * 2), 6, 3)
EXPLODES = Diagonal(np.asarray([[[-9.0, -1.0]]] * 2), np.asarray([[[0.9, 0.1]]] * 2), 6, 3)
FULL = replace(SPEC, family="full")


def perturbed(model):
    """The same model in FULL, with entries that DIAG does not have."""
    return jax.tree.map(lambda leaf: leaf.at[:, :, 0, 1].add(1e-6), model.to_full())


def select(spec, trained, **warm_starts):
    """Run the stage on a trained model and warm starts; return the selected model and the remark on it."""
    selection = Selection("selected", KEY, spec, (spec.family,), num_blocks=2)
    state = selection.start({spec.family: trained}, WarmStarts(**warm_starts))
    state = selection.advance(state, selection.prepare())
    model, estimates = selection.finish(state), selection.metrics(state)["candidates"]
    return model, selection_remark(model, estimates), estimates


@pytest.mark.parametrize("trained", [LAZY, EXPLODES])
def test_a_selected_model_of_a_smaller_family_is_named_with_both_losses(trained):
    model, remark, estimates = select(FULL, perturbed(trained), smaller=CALM)
    assert (model.family, smallest_family(model)) == ("full", "diag")
    full, diag = (max(estimates[name]) for name in ("full", "diag"))
    assert remark == (
        "The selected model is the DIAG model: the trained FULL model has a larger tail mean "
        f"({full:.4g} against {diag:.4g})."
    )


def test_a_trained_model_of_all_layers_has_no_remark():
    model, remark, _ = select(FULL, perturbed(CALM), smaller=LAZY)
    assert (smallest_family(model), remark) == ("full", "")


def test_a_trained_model_that_is_as_good_as_a_smaller_one_is_not_called_worse():
    _, remark, _ = select(FULL, CALM.to_full(), smaller=CALM)
    assert "the trained FULL model is not better by more than 0.01%" in remark


def test_a_shallower_model_is_named_with_the_layers_that_it_uses():
    shallower = jax.tree.map(lambda leaf: leaf[:1], CALM)
    smaller = GDPlusPlus(np.zeros((2, 1, 2)), 6, 3)
    _, remark, _ = select(SPEC, LAZY, shallower=shallower, smaller=smaller)
    assert remark.startswith("The selected model is the warm start with a layer less: the trained DIAG model has")
    assert remark.endswith("The selected model uses 1 of its 2 layers, the others are zero.")


def test_without_estimates_the_weights_decide():
    gdpp = GDPlusPlus(np.asarray([[[0.1, -0.3]]]), 6, 3).to_full()
    assert selection_remark(gdpp, {}) == "The weights of the selected model are those of a GD++ model."
    worse = {"full": [0.1, None], "diag": [0.05, 0.06]}
    remark = selection_remark(gdpp, worse)
    assert "(infinite against 0.06). The weights of the selected model are those of a GD++ model." in remark
