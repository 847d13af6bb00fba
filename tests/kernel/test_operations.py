"""The native kernel against its slow and obvious twin, plain JAX."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_helpers import BATCH, GRAM, OMEGA, RATES, ROWS, TOLERANCE, P, close, inputs
from lintra.kernel import library, operations
from lintra.models.diagonal import diagonal_loss, diagonal_recursion, diagonal_states
from lintra.models.full import full_loss
from lintra.models.full import full_recursion as recursion
from lintra.models.full import full_states as recursion_states
from lintra.models.gdpp import polynomial_loss
from regression_helpers import contexts


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 5), (20, 10), (64, 3), (65, 16), (200, 11)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_matrices_of_the_kernel_are_those_of_plain_jax(n, d, dtype):
    x, y, _ = contexts(37, n, d, dtype)
    tokens = np.concatenate([x, y[..., None]], axis=-1).astype(float)
    expected = np.einsum("bni,bnj->bij", tokens, tokens)
    assert library.supports(jnp.asarray(x), jnp.asarray(y))
    found = np.asarray(operations.gram(jnp.asarray(x), jnp.asarray(y)))
    assert found.dtype == dtype
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


WIDTHS = [2, 3, 4, 5, 7, 11, 12, 17, 31, 65]
SIZES = [(width, 3, 2, jnp.float64) for width in WIDTHS] + [
    (11, 1, 1, jnp.float64), (11, 2, 1, jnp.float64), (11, 4, 3, jnp.float64),
    (2, 2, 1, jnp.float32), (11, 4, 1, jnp.float32), (65, 3, 2, jnp.float32),
]  # fmt: skip


@pytest.mark.parametrize(("width", "num_layers", "num_heads", "dtype"), SIZES)
def test_full_forward_and_reverse(width, num_layers, num_heads, dtype):
    p, q, _, gram, cotangent = inputs(width, num_layers, num_heads, dtype)

    def loss(native, p, q):
        return jnp.sum(cotangent * recursion(p, q, gram, native=native))

    assert close(recursion(p, q, gram), recursion(p, q, gram, native=False), dtype)
    assert close(recursion_states(p, q, gram), recursion_states(p, q, gram, native=False), dtype)
    fast, slow = (jax.jit(jax.grad(partial(loss, way), argnums=(0, 1)))(p, q) for way in (True, False))
    for ours, theirs in zip(fast, slow, strict=True):
        assert ours.dtype == dtype
        assert close(ours, theirs, dtype)


@pytest.mark.parametrize(("width", "num_layers", "_", "dtype"), SIZES)
def test_diagonal_forward_and_reverse(width, num_layers, _, dtype):
    _, _, omega, gram, cotangent = inputs(width, num_layers, 1, dtype)

    def loss(native, omega, gram, cotangent):
        return jnp.sum(cotangent * diagonal_recursion(omega, gram, native=native))

    assert close(diagonal_recursion(omega, gram), diagonal_recursion(omega, gram, native=False), dtype)
    assert close(diagonal_states(omega, gram), diagonal_states(omega, gram, native=False), dtype)
    fast = jax.jit(jax.grad(partial(loss, True)))(omega, gram, cotangent)
    # In 64 bits, since sums in 32 bits depend on their order
    slow = jax.jit(jax.grad(partial(loss, False)))(
        *(array.astype(jnp.float64) for array in (omega, gram, cotangent))
    )
    assert close(fast, slow.astype(dtype), dtype)


def test_slopes_in_the_gram_matrix_and_through_the_states():
    p, q, omega, gram, cotangent = inputs(5, 3, 2, jnp.float64)
    for function in (
        lambda gram, way: jnp.sum(cotangent * recursion(p, q, gram, native=way)),
        lambda gram, way: jnp.sum(cotangent * diagonal_recursion(omega, gram, native=way)),
        lambda gram, way: jnp.sum(recursion_states(p, q, gram, native=way) ** 2),
    ):
        fast, slow = (jax.grad(function)(gram, way) for way in (True, False))
        assert close(fast, slow, jnp.float64)


@pytest.mark.parametrize("axes", [(0, 0, None), (0, 0, 0), (None, None, 0), (0, None, None)])
def test_vmap_over_models_and_over_data(axes):
    chosen = [inputs(5, 3, 2, jnp.float64)[i] for i in (0, 1, 3)]
    stacked = [
        jnp.stack([value, 0.5 * value, 2 * value]) if axis == 0 else value
        for value, axis in zip(chosen, axes, strict=True)
    ]

    def gradient(way, p, q, gram):
        return jax.grad(lambda p, q: jnp.sum(recursion(p, q, gram, native=way) ** 2), argnums=(0, 1))(p, q)

    for function in (recursion, recursion_states):
        fast, slow = (jax.vmap(partial(function, native=way), axes)(*stacked) for way in (True, False))
        assert close(fast, slow, jnp.float64)
    fast, slow = (jax.vmap(partial(gradient, way), axes)(*stacked) for way in (True, False))
    assert all(close(a, b, jnp.float64) for a, b in zip(fast, slow, strict=True))


def test_vmap_of_vmap_and_of_diagonal_models():
    _, _, omega, gram, _ = inputs(5, 3, 1, jnp.float64, batch=12)
    omegas = omega * jnp.arange(1.0, 7.0).reshape(2, 3, 1, 1, 1) / 6
    grams = gram.reshape(3, 4, 5, 5)

    def run(way):
        inner = jax.vmap(partial(diagonal_recursion, native=way), (0, 0))
        return jax.vmap(inner, (0, None))(omegas, grams)

    assert run(True).shape == (2, 3, 4, 4)
    assert close(run(True), run(False), jnp.float64)


def test_it_works_inside_scan_and_with_leading_axes():
    p, q, _, gram, _ = inputs(5, 3, 1, jnp.float64, batch=12)
    grams = gram.reshape(2, 6, 5, 5)
    assert np.array_equal(recursion(p, q, grams).reshape(12, 4), recursion(p, q, gram))
    assert np.array_equal(recursion(p, q, gram[0]), recursion(p, q, gram)[0])

    def step(p, gram):
        gradient = jax.grad(lambda p: jnp.sum(recursion(p, q, gram) ** 2))(p)
        return p - 0.01 * gradient, None

    final = jax.lax.scan(step, p, grams)[0]
    assert np.isfinite(final).all()
    assert not np.array_equal(final, p)


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_distances_and_their_clipped_slopes_in_one_pass(dtype, clip):
    p, q, omega, gram, target = inputs(11, 4, 1, dtype)

    def full(way, p, q):
        return full_loss(p, q, gram, target, clip_norm=clip, native=way)

    def diagonal(way, omega):
        return diagonal_loss(omega, gram, target, clip_norm=clip, native=way)

    for function, arguments in ((full, (p, q)), (diagonal, (omega,))):
        numbers = tuple(range(len(arguments)))
        fast, slow = (
            jax.jit(jax.value_and_grad(partial(function, way), argnums=numbers))(*arguments)
            for way in (True, False)
        )
        assert all(close(a, b, dtype) for a, b in zip(jax.tree.leaves(fast), jax.tree.leaves(slow), strict=True))
        assert close(function(True, *arguments), function(False, *arguments), dtype)
    weights = recursion(p, q, gram, native=False)
    assert close(full(True, p, q), jnp.mean(jnp.sum((weights - target) ** 2, -1)) / 2, dtype)
    lengths = jnp.linalg.norm(weights - target, axis=-1)
    assert (lengths > 0.5).any()


def test_clipping_is_of_the_slope_in_the_weights():
    p, q, _, gram, target = inputs(5, 3, 1, jnp.float64)
    weights, pull_back = jax.vjp(lambda p: recursion(p, q, gram, native=False), p)
    difference = weights - target
    length = jnp.linalg.norm(difference, axis=-1, keepdims=True)
    expected = pull_back(difference * jnp.minimum(1, 0.3 / length) / BATCH)[0]
    assert close(jax.grad(lambda p: full_loss(p, q, gram, target, clip_norm=0.3))(p), expected, jnp.float64)


def test_distances_of_several_models_on_shared_data():
    p, q, omega, gram, target = inputs(5, 3, 1, jnp.float64)
    factors = jnp.asarray([0.5, 1.0, 1.5])
    for way in (True, False):
        fulls = jax.vmap(jax.grad(lambda f: full_loss(f * p, q, gram, target, native=way)))(factors)  # noqa: B023
        singles = [jax.grad(lambda f: full_loss(f * p, q, gram, target))(f) for f in factors]
        assert close(fulls, jnp.stack(singles), jnp.float64)
    diagonals = jax.vmap(jax.grad(lambda f: diagonal_loss(f * omega, gram, target)))(factors)
    singles = [jax.grad(lambda f: diagonal_loss(f * omega, gram, target, native=False))(f) for f in factors]
    assert close(diagonals, jnp.stack(singles), jnp.float64)


def _spectral_inputs(num_layers, count, dtype):
    keys = jax.random.split(jax.random.key(count), 3)
    rates = jnp.asarray([0.02, -0.3], dtype) + 0.05 * jax.random.normal(keys[0], (num_layers, 2), dtype)
    eigenvalues = jax.random.uniform(keys[1], (count,), dtype, maxval=3.0)
    return rates, eigenvalues, jax.random.uniform(keys[2], (count,), dtype)


@pytest.mark.parametrize(
    ("num_layers", "count", "dtype"), [(1, 1, jnp.float64), (7, 37, jnp.float32), (7, 5000, jnp.float64)]
)
def test_loss_and_slope_of_polynomials(num_layers, count, dtype):
    rates, eigenvalues, node_weights = _spectral_inputs(num_layers, count, dtype)
    fast, slow = (
        jax.jit(jax.value_and_grad(partial(polynomial_loss, native=way)))(rates, eigenvalues, node_weights, 0.4)
        for way in (True, False)
    )
    for ours, theirs in zip(fast, slow, strict=True):
        assert ours.dtype == dtype
        assert close(ours, theirs, dtype)
    assert fast[0] == polynomial_loss(rates, eigenvalues, node_weights, 0.4)


def test_the_slope_of_polynomials_is_that_of_finite_differences():
    rates, eigenvalues, node_weights = _spectral_inputs(5, 300, jnp.float64)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=rates.shape))
    high, low = (
        polynomial_loss(rates + step * direction, eigenvalues, node_weights, 0.4) for step in (1e-5, -1e-5)
    )
    gradient = jax.grad(polynomial_loss)(rates, eigenvalues, node_weights, 0.4)
    assert np.isclose(jnp.sum(gradient * direction), (high - low) / 2e-5, rtol=1e-8)


def test_polynomials_under_vmap_and_scan():
    rates, eigenvalues, node_weights = _spectral_inputs(3, 100, jnp.float64)
    factors = jnp.asarray([0.5, 1.0, 1.5])

    def gradients(way):
        def loss(rates, data_factor, noise_var):
            return polynomial_loss(rates, data_factor * eigenvalues, node_weights, noise_var, native=way)

        value_and_gradient = jax.value_and_grad(loss)
        models = jax.vmap(value_and_gradient, (0, None, None))(
            factors[:, None, None] * rates, jnp.asarray(1.0), 0.4
        )
        everything = jax.vmap(jax.vmap(value_and_gradient, (None, 0, 0)), (0, 0, None))(
            factors[:, None, None] * rates, factors[:, None] * factors, factors
        )
        steps = jax.lax.scan(lambda r, f: (r - 0.1 * jax.grad(loss)(r, f, 0.4), None), rates, factors)[0]
        return jax.tree.leaves((models, everything, steps))

    assert all(close(a, b, jnp.float64) for a, b in zip(gradients(True), gradients(False), strict=True))


def test_arrays_of_other_kinds_fall_back_with_a_sentence():
    p, q, _, gram, _ = inputs(3, 1, 1, jnp.float32)
    with pytest.warns(UserWarning, match=r"all float32 or all float64, not float16; plain JAX is used"):
        recursion(*(value.astype(jnp.float16) for value in (p, q, gram)))


def test_overflow_in_one_sequence_stays_in_its_lane():
    p, q, _, gram, _ = inputs(5, 4, 1, jnp.float32)
    wild = gram.at[3].multiply(1e30)
    calm, mixed = recursion(p, q, gram), recursion(p, q, wild)
    assert not np.isfinite(mixed[3]).all()
    others = np.arange(BATCH) != 3
    assert np.array_equal(calm[others], mixed[others])


@pytest.mark.parametrize("batch", [0, 3])
def test_an_empty_batch_gives_an_empty_result(batch):
    p, gram = jnp.ones((2, 1, 3, 3)), jnp.ones((batch, 3, 3))
    assert recursion(p, p, gram).shape == (batch, 2)
    assert recursion_states(p, p, gram).shape == (batch, 2, 3, 3)
    assert diagonal_recursion(jnp.ones((2, 2, 2)), gram).shape == (batch, 2)


@pytest.mark.parametrize("dtype", library._BITS)
def test_the_gram_matrix_of_no_example_is_zero(dtype):
    x, y = jnp.ones((20, 5, 3), dtype), jnp.ones((20, 5), dtype)
    assert library.supports(x, y)
    assert operations.gram(x, y).all()  # leaves other numbers in the memory
    assert not operations.gram(x[:, :0], y[:, :0]).any()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: recursion(P[:0], P[:0], GRAM), r"`p` must have shape \(layers, .*got \(0, 1, 3, 3\)"),
        (lambda: recursion(P, P[:1], GRAM), r"`p` and `q` must have the same shape, got .*\(1, 1, 3, 3\)"),
        (lambda: recursion(P, P, GRAM[:, :2]), r"`gram` must have shape .* got \(4, 2, 3\)"),
        (lambda: recursion_states(P[:, :0], P[:, :0], GRAM), r"`p` must have shape .* got \(2, 0, 3, 3\)"),
        (
            lambda: jax.grad(full_loss)(P, P, GRAM, ROWS[:3]),
            r"`target` must have shape \(4, 2\) .* got \(3, 2\)",
        ),
        (lambda: diagonal_recursion(OMEGA[:0], GRAM), r"`omega` must have shape .* got \(0, 2, 2\)"),
        (lambda: diagonal_recursion(OMEGA[:, 0], GRAM), r"`omega` must have shape .* got \(2, 2\)"),
        (lambda: jax.grad(diagonal_loss)(OMEGA, GRAM, ROWS[:, :1]), r"`target` must have shape \(4, 2\)"),
        (lambda: polynomial_loss(RATES[:0], ROWS, 1.0, 0.1), r"`rates` must have shape .* got \(0, 2\)"),
        (lambda: operations.gram(GRAM, ROWS), r"`x` and `y` must have shapes .* got \(4, 3, 3\) and \(4, 2\)"),
        (lambda: operations.gram(GRAM[..., :0], GRAM[..., 0]), r"with d ≥ 1, got \(4, 3, 0\)"),
    ],
)
def test_python_rejects_wrong_shapes_with_a_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()
