"""Derivatives of every predictor, inside and outside of `plain_jax`."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import lintra
import members
from lintra.baselines.bayes import Bayes
from lintra.kernel import library, plain
from lintra.models.gdpp import polynomial_loss
from lintra.predictor import AbstractPredictor
from lintra.statistics.gram import GramStatistics

_DIM, _COUNT = 2, 7
_PROBLEM = lintra.NoisyRegression(_DIM, _COUNT, "uniform(0,2)")


MODELS = members.models(_PROBLEM, sizes=((2, 2),))
PREDICTORS: dict[str, AbstractPredictor] = {
    **MODELS,
    **members.adapted(MODELS["diag-2-h2"]),
    **members.baselines(_PROBLEM),
}
_quick_jit = partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 0}
)  # compiling is most of the time


def _tokens():
    return jnp.asarray(np.random.default_rng(3).normal(size=(_COUNT, _DIM + 1)))


def _weights_of_vector(predictor):
    """The weights as a function of one vector, which holds all parameters and all examples; and the vector."""
    arrays, rest = eqx.partition(predictor, eqx.is_inexact_array)
    vector, unravel = ravel_pytree((arrays, _tokens()))

    def weights(vector):
        arrays, tokens = unravel(vector)
        stats = GramStatistics(tokens.T @ tokens, jnp.asarray(_COUNT))
        return eqx.combine(arrays, rest).weights(stats)

    return weights, vector


def _along(function, vector, direction, step=1e-5):
    """The derivative of a function along a direction, by central differences."""
    ends = function(vector + step * direction), function(vector - step * direction)
    return (ends[0] - ends[1]) / (2 * step)


def _assert_close(found, expected, tolerance):
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(np.abs(expected).max(), 1e-3))


@pytest.mark.parametrize("name", PREDICTORS)
def test_all_derivatives_in_plain_jax_agree_with_finite_differences(name):
    weights, vector = _weights_of_vector(PREDICTORS[name])
    direction = jnp.asarray(np.random.default_rng(4).normal(size=vector.shape))
    pull = jnp.asarray([1.0, -2.0])

    @_quick_jit
    def everything(vector):
        tangent = jax.jvp(weights, (vector,), (direction,))[1]
        gradient = jax.grad(lambda vector: pull @ weights(vector))(vector)
        return weights(vector), tangent, jax.jacfwd(weights)(vector), gradient, jax.hessian(weights)(vector)

    with lintra.plain_jax():
        value, tangent, jacobian, gradient, hessian = everything(vector)
        expected = _along(lambda vector: everything(vector)[0], vector, direction)
        expected_hessian = _along(lambda vector: everything(vector)[2], vector, direction)
    _assert_close(tangent, expected, 1e-6)
    _assert_close(jacobian @ direction, expected, 1e-6)
    _assert_close(gradient, pull @ jacobian, 1e-10)
    _assert_close(hessian @ direction, expected_hessian, 1e-6)
    # Outside, the kernel gives the same numbers, and the same first derivative in reverse mode.
    _assert_close(weights(vector), value, 1e-12)
    _assert_close(_quick_jit(jax.grad(lambda vector: pull @ weights(vector)))(vector), gradient, 1e-10)


def test_the_bayes_predictor_can_be_differentiated_in_the_bounds_of_its_prior():
    stats = GramStatistics(_tokens().T @ _tokens(), jnp.asarray(_COUNT))

    @jax.jit
    def weights(bounds):
        bayes = eqx.tree_at(
            lambda bayes: (bayes.noise.low, bayes.noise.high), Bayes("uniform(0,2)"), tuple(bounds)
        )
        return bayes.weights(stats)

    bounds, direction = jnp.asarray([0.5, 1.5]), jnp.asarray([1.0, -0.5])
    expected = _along(weights, bounds, direction)
    assert np.abs(expected).max() > 1e-3
    _assert_close(jax.jacrev(weights)(bounds) @ direction, expected, 1e-6)
    _assert_close(jax.jacfwd(weights)(bounds) @ direction, expected, 1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_training_loss_has_its_true_hessian_in_plain_jax(name):
    vector, unravel = ravel_pytree(MODELS[name])
    gram = (_tokens().T @ _tokens() / _COUNT)[None]
    direction = jnp.ones_like(vector)

    @_quick_jit
    def derivatives(vector):
        def loss(vector):
            return unravel(vector).loss(gram, jnp.ones((1, _DIM)))

        return loss(vector), jax.grad(loss)(vector), jax.hessian(loss)(vector)

    with lintra.plain_jax():
        _, gradient, hessian = derivatives(vector)
        _assert_close(gradient @ direction, _along(lambda vector: derivatives(vector)[0], vector, direction), 1e-6)
        _assert_close(hessian @ direction, _along(lambda vector: derivatives(vector)[1], vector, direction), 1e-6)


def test_the_spectral_loss_can_be_differentiated_in_eigenvalues_in_plain_jax():
    rates, eigenvalues = jnp.asarray([[-0.1, -0.5], [0.2, -0.3]]), jnp.asarray([0.5, 1.0, 2.0])

    def loss(eigenvalues):
        return polynomial_loss(rates, eigenvalues, 1 / 3, 0.5)

    with lintra.plain_jax():
        gradient = jax.grad(loss)(eigenvalues)
        _assert_close(gradient.sum(), _along(loss, eigenvalues, jnp.ones(3)), 1e-6)


@pytest.mark.parametrize("switch", [None, plain.ClearingSwitch()], ids=["JAX's context", "older JAX"])
def test_compiled_programs_are_not_shared_between_inside_and_outside(monkeypatch, switch):
    if switch is not None:
        monkeypatch.setattr(plain, "_switch", switch)
    traced, model = [], MODELS["full-2-h2"]

    @jax.jit
    def weights(stats):
        traced.append(plain.is_plain())
        return model.weights(stats)

    stats = GramStatistics(_tokens().T @ _tokens(), jnp.asarray(_COUNT))

    def of_gram(gram):
        return weights(GramStatistics(gram, stats.num_examples))

    for _ in range(2):
        assert ("lintra_full_forward" in weights.lower(stats).as_text()) == library.supports(stats.gram)
        outside = weights(stats)
        with lintra.plain_jax():
            assert "lintra_full_forward" not in weights.lower(stats).as_text()
            assert jax.jacfwd(lambda gram: weights(GramStatistics(gram, stats.num_examples)))(
                stats.gram
            ).shape == (
                2,
                3,
                3,
            )
            np.testing.assert_allclose(weights(stats), outside, rtol=1e-12)
    assert {True, False} == set(traced)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jacfwd(of_gram)(stats.gram)


def test_plain_jax_holds_inside_of_a_traced_function():
    model, gram = MODELS["diag-2-h2"], _tokens().T @ _tokens()

    @jax.jit
    def derivatives(gram):
        with lintra.plain_jax():
            return jax.jacfwd(lambda gram: model.weights(GramStatistics(gram, jnp.asarray(_COUNT))))(gram)

    assert derivatives(gram).shape == (2, 3, 3)
    assert not plain.is_plain()
