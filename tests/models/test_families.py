from itertools import combinations_with_replacement

import jax
import numpy as np
import pytest

from lintra.models import FAMILIES, Diagonal, Full, GDPlusPlus
from lintra.models.families import num_used_layers, pad_layers, smallest_family, to_family
from members import MODELS, NUM_EXAMPLES


def test_matrices_of_another_family_are_rejected():
    with pytest.raises(ValueError, match=r"`P` must be diagonal.*Full.from_matrices"):
        Diagonal.from_matrices(*MODELS["full-1-h1"].matrices(), num_examples=NUM_EXAMPLES)
    with pytest.raises(ValueError, match=r"q_y = 0.*Diagonal.from_matrices"):
        GDPlusPlus.from_matrices(*MODELS["diag-1-h1"].matrices(), num_examples=NUM_EXAMPLES)


@pytest.mark.parametrize("num_heads", [1, 3])
@pytest.mark.parametrize(("family", "larger"), [*combinations_with_replacement(FAMILIES, 2)])
def test_the_smallest_family_of_a_converted_model_is_its_own(family, larger, num_heads):
    model = FAMILIES[family].random(2, dim=3, num_examples=7, scale=0.3)
    converted = pad_layers(to_family(model, larger, num_heads), 4)
    assert smallest_family(converted) == family
    assert (num_used_layers(converted), num_used_layers(model)) == (2, 2)


def test_an_entry_off_the_diagonal_makes_a_model_a_full_one():
    model = Diagonal.random(2, dim=3, num_examples=7, scale=0.3).to_full()
    off = jax.tree.map(lambda leaf: leaf.at[1, 0, 0, 2].add(1e-6), model)
    assert isinstance(off, Full)
    assert smallest_family(off) == "full"


def test_a_layer_with_p_or_q_of_zeros_is_not_used():
    p, q = np.zeros((3, 2, 2)), np.ones((3, 2, 2))
    p[1, 1], p[2, 0], q[2, 0] = 1.0, 1.0, 0.0
    assert num_used_layers(Diagonal(p, q, 7, 3)) == 1
