"""Inputs and comparisons that tests of the native kernel share."""

import jax
import jax.numpy as jnp
import numpy as np

BATCH = 37  # not a whole number of vectors
TOLERANCE = {jnp.float32: 3e-5, jnp.float64: 1e-13}


def inputs(width, num_layers, num_heads, dtype, batch=BATCH):
    keys = jax.random.split(jax.random.key(100 * width + num_layers), 5)
    scale = 0.3 / width**0.5
    p, q = (scale * jax.random.normal(key, (num_layers, num_heads, width, width), dtype) for key in keys[:2])
    omega = 0.3 / width * jax.random.normal(keys[2], (num_layers, 2, 2), dtype)
    x = jax.random.normal(keys[3], (batch, 2 * width, width), dtype)
    gram = jnp.einsum("bni,bnj->bij", x, x) / (2 * width)
    return p, q, omega, gram, jax.random.normal(keys[4], (batch, width - 1), dtype)


def close(value, expected, dtype):
    value, expected = np.asarray(value, np.float64), np.asarray(expected, np.float64)
    return np.abs(value - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max()


P, OMEGA, RATES, GRAM, ROWS = (jnp.ones(s) for s in ((2, 1, 3, 3), (2, 2, 2), (2, 2), (4, 3, 3), (4, 2)))
