import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintra.problem.noisy_regression import NoisyRegression
from members import random_rotation


@given(st.one_of(st.integers(max_value=0), st.floats(), st.text(max_size=3), st.none(), st.booleans()))
def test_sizes_that_are_not_counts_are_rejected(value):
    for name in ("dim", "num_examples"):
        with pytest.raises(ValueError, match=f"`{name}` must be a whole number"):
            NoisyRegression(**{name: value})


def test_a_covariance_may_be_a_spectrum_or_a_matrix():
    spectrum = np.asarray([1.0, 2.0, 3.0])
    rotation = random_rotation(np.random.default_rng(0), 3)
    diagonal = NoisyRegression(dim=3, covariance=spectrum)
    rotated = NoisyRegression(dim=3, covariance=rotation @ np.diag(spectrum) @ rotation.T)
    assert diagonal.covariance is not None
    assert jnp.allclose(jnp.diag(spectrum), diagonal.covariance)
    for problem in (diagonal, rotated, NoisyRegression(dim=3)):
        root = problem.covariance_root()
        expected = jnp.eye(3) if problem.covariance is None else problem.covariance
        assert np.allclose(root @ root.T, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("covariance", "says"),
    [
        (np.ones(4), "shape"),
        (np.ones((3, 2)), "shape"),
        (np.asarray([1.0, -1.0, 1.0]), "negative eigenvalue"),
        (np.triu(np.ones((3, 3))), "symmetric"),
        (np.asarray([1.0, np.nan, 1.0]), "finite"),
        ("a", "real numbers"),
        ([[1.0], [1.0, 2.0]], "array of numbers"),
        (np.asarray([1j, 1, 1]), "real numbers"),
    ],
)
def test_a_covariance_that_is_none_is_rejected(covariance, says):
    with pytest.raises(ValueError, match=rf"`covariance`.*{says}"):
        NoisyRegression(dim=3, covariance=covariance)
