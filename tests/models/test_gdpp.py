import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.models import GDPlusPlus
from lintra.statistics.eigenvalue_density import wishart_quadrature
from lintra.statistics.sampling import sample_statistics
from members import MODELS
from models_helpers import PROBLEM, close


@pytest.mark.parametrize("num_heads", [1, 2])
def test_gdpp_in_the_eigenbasis_is_gdpp(num_heads, getkey):
    stats, _ = sample_statistics(PROBLEM, (3, 5), key=getkey())
    model = MODELS[f"gd++-4-h{num_heads}"]
    assert isinstance(model, GDPlusPlus)
    assert close(model.spectral_weights(stats), model.layer_weights(stats))


def test_quadrature_gives_the_exact_loss_of_the_best_layer():
    n, d, noise_var = 20, 10, 25 / 3
    step = -n / (n + d + 1 + noise_var)  # in front of α / n
    model = GDPlusPlus(np.asarray([[[0.0, step]]]), num_examples=n, dim=d)
    nodes, node_weights = map(jnp.asarray, wishart_quadrature(n, d))
    loss, gradient = jax.value_and_grad(lambda model: model.spectral_loss(nodes, node_weights, noise_var))(model)
    assert np.isclose(loss, d / 2 * (1 + step), rtol=1e-12)
    assert np.abs(gradient.rates).max() < 1e-10
