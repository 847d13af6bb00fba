"""Nodes and weights that follow a density with one maximum, wherever it lies."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_GRID = 16  # points of the searching grid
_FILLED = 6  # points of it on which the posterior must lie; 64 nodes are far more than enough for the rest
_ROUNDS = 8  # each narrows the interval up to fivefold: enough for n of 10¹⁰
_NEGLIGIBLE = 30.0  # log-density below the largest at which the posterior is given up


def adaptive_quadrature(
    log_density: Callable[[Float[Array, " k"]], Float[Array, " k"]], low: Float[Array, ""], high: Float[Array, ""]
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Nodes and normalised weights for a density with one hump on [low, high], however narrow."""
    grid = jnp.linspace(0.0, 1.0, _GRID).astype(low.dtype)

    def narrow(search: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high, rounds, _ = search
        points = low + (high - low) * grid
        values = log_density(points)
        kept = values > values.max() - _NEGLIGIBLE
        first, last = jnp.argmax(kept), _GRID - 1 - jnp.argmax(kept[::-1])
        found = (kept.sum() >= _FILLED) | (rounds + 1 >= _ROUNDS)
        return points[jnp.maximum(first - 1, 0)], points[jnp.minimum(last + 1, _GRID - 1)], rounds + 1, found

    search = low, high, jnp.asarray(0), jnp.asarray(False)
    low, high, _, _ = jax.lax.while_loop(lambda search: ~search[-1], narrow, search)
    nodes = low + (high - low) * (jnp.asarray(_NODES, low.dtype) + 1) / 2
    return nodes, jax.nn.softmax(log_density(nodes) + jnp.log(jnp.asarray(_WEIGHTS, low.dtype)))
