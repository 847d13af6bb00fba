import numpy as np
import pytest

from anatomy_helpers import contexts, small
from lintra.anatomy import canonical_form
from lintra.models import Full


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
@pytest.mark.parametrize("num_heads", [1, 2, 3])
def test_the_balanced_form_is_the_same_function(family, num_heads):
    model = small(family, num_heads)
    P, Q = canonical_form(model)
    again = Full.from_matrices(P, Q, model.num_examples)
    stats = contexts()
    np.testing.assert_allclose(again.weights(stats), model.weights(stats), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(P, axis=(2, 3)), np.linalg.norm(Q, axis=(2, 3)), atol=1e-12)
    overlap = np.einsum("lhab,lkab->lhk", P, P)
    assert np.abs(overlap - np.einsum("lhh->lh", overlap)[..., None] * np.eye(num_heads)).max() < 1e-12
