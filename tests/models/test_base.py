import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_helpers import OMEGA, P
from lintra.models import FAMILIES, Diagonal, Full, GDPlusPlus
from lintra.statistics.sampling import sample_statistics
from members import DIM, KEY, NUM_EXAMPLES
from models_helpers import PROBLEM, close


@pytest.mark.parametrize("family", FAMILIES)
def test_models_for_another_label_scale_predict_in_that_scale(family):
    model = FAMILIES[family].random(3, dim=3, num_examples=6, num_heads=2, scale=0.5, key=KEY)
    gram = jnp.cov(jax.random.normal(KEY, (4, 9)))
    scale = jnp.asarray([1.0, 1.0, 1.0, 7.0])
    expected = 7.0 * model.final_weights(gram)
    scaled = model.for_label_scale(7.0).final_weights(gram * scale[:, None] * scale)
    assert np.allclose(scaled, expected, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_printed_numbers_are_converted_to_the_parameters_of_the_family(family):
    model = FAMILIES[family].random(2, dim=3, num_examples=6, key=KEY)
    P, Q = model.from_printed().matrices()
    assert np.allclose(P, 6 * model.matrices()[0], rtol=1e-12)
    assert np.array_equal(Q, model.matrices()[1])


def test_matrices_go_out_and_come_back(model, getkey):
    P, Q = model.matrices()
    assert P.shape == Q.shape == (model.num_layers, model.num_heads, DIM + 1, DIM + 1)
    assert isinstance(P, np.ndarray)
    again = FAMILIES[model.family].from_matrices(P, Q, num_examples=NUM_EXAMPLES)
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())
    assert close(again.weights(stats), model.weights(stats))
    for before, after in zip((P, Q), again.matrices(), strict=True):
        assert close(after, before, 1e-15)


@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize("name", ["num_layers", "num_heads", "dim", "num_examples"])
def test_a_model_of_no_size_is_rejected(family, name):
    sizes = {"num_layers": 2, "num_heads": 1, "dim": 3, "num_examples": 5} | {name: 0}
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 1, got 0"):
        family.random(**sizes, key=KEY)


def test_weights_can_be_differentiated_and_compiled(model, getkey):
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())

    @jax.jit
    def loss(model):
        return jnp.sum(model.weights(stats) ** 2)

    gradient = jax.grad(loss)(model)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))
    assert any(bool((leaf != 0).any()) for leaf in jax.tree.leaves(gradient))


def test_a_model_without_layers_is_rejected():
    for build in (
        lambda: Full(P[:0], P[:0], 20),
        lambda: Full.from_matrices(P[:0], P[:0], 20),
        lambda: Diagonal(OMEGA[:0], OMEGA[:0], 20, 2),
        lambda: GDPlusPlus(OMEGA[:0], 20, 2),
    ):
        with pytest.raises(ValueError, match=r"must have .*shape \(layers, heads, .*got \(0, "):
            build()
