import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.experiments.layer_tensors import LayerTensors
from lintra.models import Diagonal, Full, GDPlusPlus

KEY = jax.random.key(5)


def test_the_omega_of_diag_are_its_own_but_for_what_is_never_read():
    model = Diagonal.random(3, dim=4, num_heads=2, scale=0.3, key=KEY)
    expected = np.array(model.omega)
    expected[-1, 0] = 0  # the inputs of the last layer
    np.testing.assert_allclose(LayerTensors.from_model(model).omega, expected, atol=1e-14)
    np.testing.assert_allclose(LayerTensors.from_model(model.to_full()).omega, expected, atol=1e-14)
    one = LayerTensors.from_model(Diagonal.random(1, dim=4, scale=0.3, key=KEY))
    assert one.label_share == 0  # the query's label is zero
    assert one.gdpp_share == pytest.approx(1.0)


def test_shares_are_those_of_gdpp_of_labels_and_of_what_is_off_the_diagonal():
    gdpp = GDPlusPlus.random(2, dim=4, scale=0.3, key=KEY)
    assert LayerTensors.from_model(gdpp.to_full()).gdpp_share == pytest.approx(1.0)
    diagonal = LayerTensors.from_model(Diagonal.random(2, dim=4, scale=0.3, key=KEY))
    assert 0 < diagonal.label_share < 1
    assert diagonal.rest_share == pytest.approx(0.0, abs=1e-14)
    full = Full.random(2, dim=4, scale=0.3, key=KEY)
    shares = LayerTensors.from_model(full)
    assert shares.rest_share > 0.5
    doubled = LayerTensors.from_model(Full(2 * full.p, full.q / 2, full.num_examples))
    assert doubled.gdpp_share == pytest.approx(shares.gdpp_share)
    np.testing.assert_allclose(doubled.omega, shares.omega, atol=1e-14)


def test_the_projection_of_gdpp_is_itself_at_any_label_scale():
    gdpp = GDPlusPlus.random(3, dim=4, num_examples=9, scale=0.3, key=KEY)
    gdpp = GDPlusPlus(gdpp.rates.at[-1, :, 0].set(0.0), 9, 4)
    for label_scale in (1.0, 4.0):
        found = LayerTensors.from_model(gdpp.to_full(), label_scale).to_gdpp(9, 4)
        assert jnp.allclose(found.rates, gdpp.rates, atol=1e-14)
