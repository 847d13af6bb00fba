import pytest

from lintra.models import Diagonal, Full, GDPlusPlus
from lintra.statistics.sampling import sample_statistics
from members import MODELS, NUM_EXAMPLES
from models_helpers import PROBLEM, close


@pytest.mark.parametrize("num_heads", [1, 2, 3])
def test_gdpp_is_diag_is_full(num_heads, getkey):
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())
    gdpp = MODELS[f"gd++-4-h{num_heads}"]
    assert isinstance(gdpp, GDPlusPlus)
    diag = MODELS[f"diag-4-h{num_heads}"]
    for small, large in ((gdpp, gdpp.to_diagonal()), (gdpp, gdpp.to_full()), (diag, diag.to_full())):
        assert close(small.weights(stats), large.weights(stats))
        assert large.num_heads == num_heads
    assert isinstance(gdpp.to_diagonal(), Diagonal)
    assert isinstance(diag.to_full(), Full)


def test_matrices_of_another_family_are_rejected():
    with pytest.raises(ValueError, match=r"`P` must be diagonal.*Full.from_matrices"):
        Diagonal.from_matrices(*MODELS["full-1-h1"].matrices(), num_examples=NUM_EXAMPLES)
    with pytest.raises(ValueError, match=r"q_y = 0.*Diagonal.from_matrices"):
        GDPlusPlus.from_matrices(*MODELS["diag-1-h1"].matrices(), num_examples=NUM_EXAMPLES)
