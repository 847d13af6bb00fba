import jax.numpy as jnp
import numpy as np
import pytest

from anatomy_helpers import contexts, small
from lintra.anatomy import ablate
from lintra.models import Diagonal


@pytest.mark.parametrize("name", ["xx", "xy", "yx", "yy"])
def test_an_ablated_model_is_the_model_with_that_omega_zero(name):
    model, stats = small("diag", num_heads=2), contexts()
    row, column = ("xy".index(letter) for letter in name)
    omega = model.omega.at[1, row, column].set(0.0)
    p = jnp.stack([omega[:, :, 0], omega[:, :, 1]], axis=1)
    q = jnp.broadcast_to(jnp.eye(2), (3, 2, 2))
    expected = Diagonal(p, q, 8, 4).weights(stats)
    np.testing.assert_allclose(ablate(model, 2, name).weights(stats), expected, rtol=1e-9, atol=1e-13)
    with pytest.raises(ValueError, match="`layer` and `omega` must be"):
        ablate(model, 4, name)
