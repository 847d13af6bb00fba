import pytest

from lintra.models import Diagonal, GDPlusPlus
from members import MODELS, NUM_EXAMPLES


def test_matrices_of_another_family_are_rejected():
    with pytest.raises(ValueError, match=r"`P` must be diagonal.*Full.from_matrices"):
        Diagonal.from_matrices(*MODELS["full-1-h1"].matrices(), num_examples=NUM_EXAMPLES)
    with pytest.raises(ValueError, match=r"q_y = 0.*Diagonal.from_matrices"):
        GDPlusPlus.from_matrices(*MODELS["diag-1-h1"].matrices(), num_examples=NUM_EXAMPLES)
