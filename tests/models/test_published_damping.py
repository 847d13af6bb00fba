"""Published models are damped where contexts are unusual, and as printed on their own prior."""

import jax.numpy as jnp
import numpy as np
import pytest

from lintra import NoisyRegression, sample_data, zoo
from lintra.statistics.gram import GramStatistics

NAMES = ("full-7-uniform(0,5)", "diag-4-uniform(0,5)", "gd++-4-uniform(0,1)", "full-6-choice(1,3,5)")


def test_every_published_model_has_thresholds_and_is_loaded_as_printed():
    for name in zoo.names():
        model = zoo.load(name)
        assert model.damping is None
        damping = model.with_damping().damping
        assert damping is not None
        assert damping.rho.shape == damping.kappa.shape == (model.num_layers,)


@pytest.mark.parametrize("name", NAMES)
def test_one_long_example_or_large_inputs_explode_the_printed_model_and_not_the_damped_one(name):
    """A context is exploded if ½‖w − w_τ‖² is above 5d or not finite."""
    printed = zoo.load(name)
    x, y, truth = sample_data(NoisyRegression(noise=zoo.card(name)["noise"]), (500,), key=11)
    x, y, noise = np.array(x), np.array(y), np.asarray(y - jnp.einsum("bnd,bd->bn", x, truth.weights))
    long, large = x.copy(), 3 * x
    long[:, 0] *= 10
    for inputs in (long, large):
        labels = np.einsum("bnd,bd->bn", inputs, truth.weights) + noise
        stats = GramStatistics.from_data(inputs, labels)
        shares = []
        for model in (printed, printed.with_damping()):
            loss = 0.5 * np.sum((np.asarray(model.weights(stats)) - truth.weights) ** 2, axis=1)
            shares.append(np.mean(~(loss <= 50)))
        assert shares[0] > 0.9
        assert shares[1] == 0.0
    # On its own prior at most one sequence in ten thousand is outside of the range of a layer.
    stats = GramStatistics.from_data(x, y)
    same = (printed.weights(stats) == printed.with_damping().weights(stats)).all(axis=1)
    assert same.mean() > 0.99
