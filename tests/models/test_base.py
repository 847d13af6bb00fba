import numpy as np
import pytest

from kernel_helpers import OMEGA, P
from lintra.models import FAMILIES, Diagonal, Full, GDPlusPlus
from members import KEY


@pytest.mark.parametrize("family", FAMILIES)
def test_printed_numbers_are_converted_to_the_parameters_of_the_family(family):
    model = FAMILIES[family].random(2, dim=3, num_examples=6, key=KEY)
    P, Q = model.from_printed().matrices()
    assert np.allclose(P, 6 * model.matrices()[0], rtol=1e-12)
    assert np.array_equal(Q, model.matrices()[1])


def test_a_model_without_layers_is_rejected():
    for build in (
        lambda: Full(P[:0], P[:0], 20),
        lambda: Full.from_matrices(P[:0], P[:0], 20),
        lambda: Diagonal(OMEGA[:0], OMEGA[:0], 20, 2),
        lambda: GDPlusPlus(OMEGA[:0], 20, 2),
    ):
        with pytest.raises(ValueError, match=r"must have .*shape \(layers, heads, .*got \(0, "):
            build()
