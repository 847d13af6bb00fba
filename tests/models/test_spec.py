import pytest

from lintra.training import ModelSpec


def test_specs_are_checked():
    with pytest.raises(ValueError, match="`family` must be one of gd\\+\\+, diag, full, got 'fll'"):
        ModelSpec("fll", 2, "fixed(1)")
    with pytest.raises(ValueError, match="`num_layers`"):
        ModelSpec("full", 0, "fixed(1)")
    with pytest.raises(ValueError, match="noise"):
        ModelSpec("full", 1, "loud")
