"""Models that are the same function, in other numbers or in another basis, are found to be the same."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from anatomy_helpers import contexts, small
from lintra.anatomy import canonical_form, compare, rotate_inputs
from lintra.models import FAMILIES, Diagonal, Full


def rotation(dim=4, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


def test_scaling_and_mixing_of_heads_and_unread_rows_keep_the_function():
    model = small("full", num_heads=2)
    P, Q = model.matrices()
    mix = np.asarray([[1.0, 2.0], [-0.5, 3.0]])
    mixed = np.einsum("hk,lkab->lhab", mix, P), np.einsum("kh,lkab->lhab", np.linalg.inv(mix), Q)
    mixed[0][-1, :, :-1] += 7.0
    same = compare(model, Full.from_matrices(*mixed, model.num_examples))
    assert (same.kind, same.difference < 1e-12) == ("same function", True)
    for one, other in zip(
        canonical_form(model), canonical_form(Full.from_matrices(*mixed, model.num_examples)), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("num_heads", [1, 2])
def test_a_change_of_basis_is_found_and_leaves_the_loss(num_heads):
    model, turn = small("full", num_heads), rotation()
    turned = rotate_inputs(model, turn)
    found = compare(model, turned)
    assert found.kind == "same up to a symmetry of the problem"
    np.testing.assert_allclose(found.rotation, turn, atol=1e-9)
    stats = contexts()
    block = np.eye(5)
    block[:4, :4] = turn
    moved = replace(stats, gram=block @ stats.gram @ block.T)
    np.testing.assert_allclose(turned.weights(moved), model.weights(stats) @ turn.T, rtol=1e-9, atol=1e-12)


def test_a_flip_of_the_labels_sign_is_turning_all_inputs_round():
    model, stats = small("full"), contexts()
    flip = np.diag([1.0, 1.0, 1.0, 1.0, -1.0])
    flipped = Full.from_matrices(flip @ model.matrices()[0] @ flip, flip @ model.matrices()[1] @ flip, 8)
    turned = compare(model, flipped)
    np.testing.assert_allclose(turned.rotation, -np.eye(4), atol=1e-9)
    mirrored = replace(stats, gram=flip @ stats.gram @ flip)
    np.testing.assert_allclose(flipped.weights(mirrored), -model.weights(stats), rtol=1e-9, atol=1e-12)


def test_models_that_differ_are_called_different():
    other = FAMILIES["full"].random(3, dim=4, num_examples=8, scale=0.3, key=jax.random.key(9))
    assert compare(small("full"), other).kind == "different"
    model = small("diag")
    assert isinstance(model, Diagonal)
    nudged = Diagonal(model.p.at[0, 0, 0].add(1e-3), model.q, 8, 4)
    assert compare(model, nudged).kind == "different"
    with pytest.raises(ValueError, match="same number of layers"):
        compare(model, small("diag", num_layers=2))
