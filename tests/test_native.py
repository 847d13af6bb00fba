"""The native kernel against its slow and obvious twin, plain JAX."""

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.kernel import library
from lintra.models import GDPlusPlus
from lintra.models.diagonal import diagonal_loss, diagonal_recursion, diagonal_states
from lintra.models.full import full_loss
from lintra.models.full import full_recursion as recursion
from lintra.models.full import full_states as recursion_states
from lintra.models.gdpp import polynomial_loss
from lintra.statistics.wishart import wishart_quadrature

BATCH = 37  # not a whole number of vectors
WIDTHS = [2, 3, 4, 5, 7, 11, 12, 17, 31, 65]
TOLERANCE = {jnp.float32: 3e-5, jnp.float64: 1e-13}


def _inputs(width, layers, heads, dtype, batch=BATCH):
    keys = jax.random.split(jax.random.key(100 * width + layers), 5)
    scale = 0.3 / width**0.5
    p, q = (scale * jax.random.normal(key, (layers, heads, width, width), dtype) for key in keys[:2])
    omega = 0.3 / width * jax.random.normal(keys[2], (layers, 2, 2), dtype)
    x = jax.random.normal(keys[3], (batch, 2 * width, width), dtype)
    gram = jnp.einsum("bni,bnj->bij", x, x) / (2 * width)
    return p, q, omega, gram, jax.random.normal(keys[4], (batch, width - 1), dtype)


def _close(value, expected, dtype):
    value, expected = np.asarray(value, np.float64), np.asarray(expected, np.float64)
    return np.abs(value - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max()


def test_the_kernel_was_built():
    """Where this fails, no C++ compiler was found, and all other tests of this file compare JAX with itself."""
    assert library.instruction_set() in ("base", "v3", "v4")


FULL = [(width, 3, 2, jnp.float64) for width in WIDTHS] + [
    (11, 1, 1, jnp.float64), (11, 2, 1, jnp.float64), (11, 4, 3, jnp.float64),
    (2, 2, 1, jnp.float32), (11, 4, 1, jnp.float32), (65, 3, 2, jnp.float32),
]  # fmt: skip


@pytest.mark.parametrize(("width", "layers", "heads", "dtype"), FULL)
def test_full_forward_and_reverse(width, layers, heads, dtype):
    p, q, _, gram, slope = _inputs(width, layers, heads, dtype)

    def loss(native, p, q):
        return jnp.sum(slope * recursion(p, q, gram, native=native))

    assert _close(recursion(p, q, gram), recursion(p, q, gram, native=False), dtype)
    assert _close(recursion_states(p, q, gram), recursion_states(p, q, gram, native=False), dtype)
    fast, slow = (jax.jit(jax.grad(partial(loss, way), argnums=(0, 1)))(p, q) for way in (True, False))
    for ours, theirs in zip(fast, slow, strict=True):
        assert ours.dtype == dtype
        assert _close(ours, theirs, dtype)


@pytest.mark.parametrize(("width", "layers", "_", "dtype"), FULL)
def test_diagonal_forward_and_reverse(width, layers, _, dtype):
    _, _, omega, gram, slope = _inputs(width, layers, 1, dtype)

    def loss(native, omega, gram, slope):
        return jnp.sum(slope * diagonal_recursion(omega, gram, native=native))

    assert _close(diagonal_recursion(omega, gram), diagonal_recursion(omega, gram, native=False), dtype)
    assert _close(diagonal_states(omega, gram), diagonal_states(omega, gram, native=False), dtype)
    fast = jax.jit(jax.grad(partial(loss, True)))(omega, gram, slope)
    # In 64 bits, since sums in 32 bits depend on their order
    slow = jax.jit(jax.grad(partial(loss, False)))(*(array.astype(jnp.float64) for array in (omega, gram, slope)))
    assert _close(fast, slow.astype(dtype), dtype)


def test_slopes_in_the_gram_matrix_and_through_the_states():
    p, q, omega, gram, slope = _inputs(5, 3, 2, jnp.float64)
    for function in (
        lambda gram, way: jnp.sum(slope * recursion(p, q, gram, native=way)),
        lambda gram, way: jnp.sum(slope * diagonal_recursion(omega, gram, native=way)),
        lambda gram, way: jnp.sum(recursion_states(p, q, gram, native=way) ** 2),
    ):
        fast, slow = (jax.grad(function)(gram, way) for way in (True, False))
        assert _close(fast, slow, jnp.float64)


@pytest.mark.parametrize("axes", [(0, 0, None), (0, 0, 0), (None, None, 0), (0, None, None)])
def test_vmap_over_models_and_over_data(axes):
    inputs = [_inputs(5, 3, 2, jnp.float64)[i] for i in (0, 1, 3)]
    stacked = [
        jnp.stack([value, 0.5 * value, 2 * value]) if axis == 0 else value
        for value, axis in zip(inputs, axes, strict=True)
    ]

    def gradient(way, p, q, gram):
        return jax.grad(lambda p, q: jnp.sum(recursion(p, q, gram, native=way) ** 2), argnums=(0, 1))(p, q)

    for function in (recursion, recursion_states):
        fast, slow = (jax.vmap(partial(function, native=way), axes)(*stacked) for way in (True, False))
        assert _close(fast, slow, jnp.float64)
    fast, slow = (jax.vmap(partial(gradient, way), axes)(*stacked) for way in (True, False))
    assert all(_close(a, b, jnp.float64) for a, b in zip(fast, slow, strict=True))


def test_vmap_of_vmap_and_of_diagonal_models():
    _, _, omega, gram, _ = _inputs(5, 3, 1, jnp.float64, batch=12)
    omegas = omega * jnp.arange(1.0, 7.0).reshape(2, 3, 1, 1, 1) / 6
    grams = gram.reshape(3, 4, 5, 5)

    def run(way):
        inner = jax.vmap(partial(diagonal_recursion, native=way), (0, 0))
        return jax.vmap(inner, (0, None))(omegas, grams)

    assert run(True).shape == (2, 3, 4, 4)
    assert _close(run(True), run(False), jnp.float64)


def test_it_works_inside_scan_and_with_leading_axes():
    p, q, _, gram, _ = _inputs(5, 3, 1, jnp.float64, batch=12)
    grams = gram.reshape(2, 6, 5, 5)
    assert np.array_equal(recursion(p, q, grams).reshape(12, 4), recursion(p, q, gram))
    assert np.array_equal(recursion(p, q, gram[0]), recursion(p, q, gram)[0])

    def step(p, gram):
        slope = jax.grad(lambda p: jnp.sum(recursion(p, q, gram) ** 2))(p)
        return p - 0.01 * slope, None

    final = jax.lax.scan(step, p, grams)[0]
    assert np.isfinite(final).all()
    assert not np.array_equal(final, p)


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_distances_and_their_clipped_slopes_in_one_pass(dtype, clip):
    p, q, omega, gram, target = _inputs(11, 4, 1, dtype)

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
        assert all(_close(a, b, dtype) for a, b in zip(jax.tree.leaves(fast), jax.tree.leaves(slow), strict=True))
        assert _close(function(True, *arguments), function(False, *arguments), dtype)
    weights = recursion(p, q, gram, native=False)
    assert _close(full(True, p, q), jnp.mean(jnp.sum((weights - target) ** 2, -1)) / 2, dtype)
    lengths = jnp.linalg.norm(weights - target, axis=-1)
    assert (lengths > 0.5).any()


def test_clipping_is_of_the_slope_in_the_weights():
    p, q, _, gram, target = _inputs(5, 3, 1, jnp.float64)
    weights, pull_back = jax.vjp(lambda p: recursion(p, q, gram, native=False), p)
    difference = weights - target
    length = jnp.linalg.norm(difference, axis=-1, keepdims=True)
    expected = pull_back(difference * jnp.minimum(1, 0.3 / length) / BATCH)[0]
    assert _close(jax.grad(lambda p: full_loss(p, q, gram, target, clip_norm=0.3))(p), expected, jnp.float64)


def test_distances_of_several_models_on_shared_data():
    p, q, omega, gram, target = _inputs(5, 3, 1, jnp.float64)
    factors = jnp.asarray([0.5, 1.0, 1.5])
    for way in (True, False):
        fulls = jax.vmap(jax.grad(lambda f: full_loss(f * p, q, gram, target, native=way)))(factors)  # noqa: B023
        singles = [jax.grad(lambda f: full_loss(f * p, q, gram, target))(f) for f in factors]
        assert _close(fulls, jnp.stack(singles), jnp.float64)
    diagonals = jax.vmap(jax.grad(lambda f: diagonal_loss(f * omega, gram, target)))(factors)
    singles = [jax.grad(lambda f: diagonal_loss(f * omega, gram, target, native=False))(f) for f in factors]
    assert _close(diagonals, jnp.stack(singles), jnp.float64)


def _spectral_inputs(layers, count, dtype):
    keys = jax.random.split(jax.random.key(count), 3)
    rates = jnp.asarray([0.02, -0.3], dtype) + 0.05 * jax.random.normal(keys[0], (layers, 2), dtype)
    eigenvalues = jax.random.uniform(keys[1], (count,), dtype, maxval=3.0)
    return rates, eigenvalues, jax.random.uniform(keys[2], (count,), dtype)


@pytest.mark.parametrize(
    ("layers", "count", "dtype"), [(1, 1, jnp.float64), (7, 37, jnp.float32), (7, 5000, jnp.float64)]
)
def test_loss_and_slope_of_polynomials(layers, count, dtype):
    rates, eigenvalues, masses = _spectral_inputs(layers, count, dtype)
    fast, slow = (
        jax.jit(jax.value_and_grad(partial(polynomial_loss, native=way)))(rates, eigenvalues, masses, 0.4)
        for way in (True, False)
    )
    for ours, theirs in zip(fast, slow, strict=True):
        assert ours.dtype == dtype
        assert _close(ours, theirs, dtype)
    assert fast[0] == polynomial_loss(rates, eigenvalues, masses, 0.4)


def test_the_slope_of_polynomials_is_that_of_finite_differences():
    rates, *data = _spectral_inputs(5, 300, jnp.float64)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=rates.shape))
    high, low = (polynomial_loss(rates + step * direction, *data, 0.4) for step in (1e-5, -1e-5))
    slope = jax.grad(polynomial_loss)(rates, *data, 0.4)
    assert np.isclose(jnp.sum(slope * direction), (high - low) / 2e-5, rtol=1e-8)


def test_polynomials_under_vmap_and_scan():
    rates, eigenvalues, masses = _spectral_inputs(3, 100, jnp.float64)
    factors = jnp.asarray([0.5, 1.0, 1.5])

    def gradients(way):
        def loss(rates, data_factor, noise_var):
            return polynomial_loss(rates, data_factor * eigenvalues, masses, noise_var, native=way)

        slope = jax.value_and_grad(loss)
        models = jax.vmap(slope, (0, None, None))(factors[:, None, None] * rates, jnp.asarray(1.0), 0.4)
        everything = jax.vmap(jax.vmap(slope, (None, 0, 0)), (0, 0, None))(
            factors[:, None, None] * rates, factors[:, None] * factors, factors
        )
        steps = jax.lax.scan(lambda r, f: (r - 0.1 * jax.grad(loss)(r, f, 0.4), None), rates, factors)[0]
        return jax.tree.leaves((models, everything, steps))

    assert all(_close(a, b, jnp.float64) for a, b in zip(gradients(True), gradients(False), strict=True))


def test_quadrature_gives_the_exact_loss_of_the_best_layer():
    n, d, noise_var = 20, 10, 25 / 3
    step = -n / (n + d + 1 + noise_var)  # in front of α / n
    model = GDPlusPlus([[[0.0, step]]], num_examples=n, dim=d)
    nodes, masses = map(jnp.asarray, wishart_quadrature(n, d))
    loss, slope = jax.value_and_grad(lambda model: model.spectral_loss(nodes, masses, noise_var))(model)
    assert np.isclose(loss, d / 2 * (1 + step), rtol=1e-12)
    assert np.abs(slope.rates).max() < 1e-10


def test_arrays_of_other_kinds_fall_back_with_a_sentence():
    p, q, _, gram, _ = _inputs(3, 1, 1, jnp.float32)
    with pytest.warns(UserWarning, match=r"all float32 or all float64, not float16; plain JAX is used"):
        recursion(*(value.astype(jnp.float16) for value in (p, q, gram)))


def test_overflow_in_one_sequence_stays_in_its_lane():
    p, q, _, gram, _ = _inputs(5, 4, 1, jnp.float32)
    wild = gram.at[3].multiply(1e30)
    calm, mixed = recursion(p, q, gram), recursion(p, q, wild)
    assert not np.isfinite(mixed[3]).all()
    others = np.arange(BATCH) != 3
    assert np.array_equal(calm[others], mixed[others])


CHILD = """
import sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import lintra
from lintra.kernel import library
from lintra.models.diagonal import diagonal_recursion
from lintra.models.full import full_recursion as recursion
from lintra.models.gdpp import polynomial_loss
rng = np.random.default_rng(0)
p, q = (jnp.asarray(0.1 * rng.normal(size=(3, 1, 11, 11))) for _ in range(2))
x = rng.normal(size=(1000, 20, 11))
gram = jnp.asarray(np.einsum("bni,bnj->bij", x, x) / 20)
omega = jnp.asarray(0.1 * rng.normal(size=(3, 2, 2)))
full = jax.jit(jax.grad(lambda p: jnp.sum(recursion(p, q, gram) ** 2)))(p)
diagonal = jax.jit(jax.grad(lambda omega: jnp.sum(diagonal_recursion(omega, gram) ** 2)))(omega)
eigenvalues = jnp.asarray(rng.uniform(0, 3, size=10_000))
polynomial = jax.jit(jax.grad(polynomial_loss))(omega[:, 0], eigenvalues, eigenvalues, 0.4)
isa = np.asarray(str(library.instruction_set()))
np.savez(sys.argv[1], full=full, diagonal=diagonal, polynomial=polynomial, isa=isa)
"""


def _child(path, **environment):
    command = [sys.executable, "-c", CHILD, str(path)]
    run = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return np.load(path)


def test_sums_do_not_depend_on_the_number_of_threads():
    p, q, omega, gram, _ = _inputs(5, 3, 1, jnp.float32, batch=3000)
    eigenvalues = jnp.linalg.eigvalsh(gram).ravel()

    def loss(p, q, omega):
        total = jnp.sum(recursion(p, q, gram)) + jnp.sum(diagonal_recursion(omega, gram))
        return total + polynomial_loss(omega[:, 0], eigenvalues, 1.0, 0.4)

    slope = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))
    try:
        library.limit_threads(1)
        one = jax.tree.leaves(slope(p, q, omega))
        library.limit_threads(None)
        assert all(map(np.array_equal, one, jax.tree.leaves(slope(p, q, omega))))
    finally:
        library.limit_threads(None)


def test_every_instruction_set_and_plain_jax_give_the_same_numbers(tmp_path):
    best = _child(tmp_path / "best.npz")
    for isa in ("base", "v3"):
        other = _child(tmp_path / f"{isa}.npz", LINTRA_ISA=isa)
        assert str(other["isa"]) in ("base", isa)
        for name in ("full", "diagonal", "polynomial"):
            assert _close(other[name], best[name], jnp.float64)
    plain = _child(tmp_path / "plain.npz", LINTRA_NATIVE="0")
    assert str(plain["isa"]) == "None"
    for name in ("full", "diagonal", "polynomial"):
        assert _close(plain[name], best[name], jnp.float64)
