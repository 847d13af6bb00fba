"""Nodes and weights that follow a density with one maximum, wherever it lies."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_GRID = 16  # points of the searching grid
_FILLED = 6  # points of it on which the posterior must lie; 64 nodes are far more than enough for the rest
_ROUNDS = 8  # each narrows the interval up to fivefold: enough for n of 10¹⁰
_NEGLIGIBLE = 30.0  # log-density below the largest at which the posterior is given up


def adaptive_quadrature(
    log_density: Callable[[Float[Array, " k"]], Float[Array, " k"]], low: Float[Array, ""], high: Float[Array, ""]
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Nodes and normalised weights for a density with one hump on [low, high], however narrow.

    The result can be differentiated in all that a `log_density` of type `jax.tree_util.Partial` holds, and in the
    bounds. The search for the hump is not differentiated: where nodes lie does not change the integral.

    Args:
        log_density: The logarithm of the density, up to a constant.
        low: Lower bound.
        high: Upper bound.

    Returns:
        Nodes, and weights that sum to one.
    """
    searched = jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if eqx.is_array(leaf) else leaf, log_density)
    bounds = low, high
    low, high = jax.lax.stop_gradient(bounds)
    grid = jnp.linspace(0.0, 1.0, _GRID).astype(low.dtype)

    def narrow(search: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high, at_low, at_high, rounds, _ = search
        points = low + (high - low) * grid
        values = searched(points)
        inside = values > values.max() - _NEGLIGIBLE
        first, last = jnp.argmax(inside), _GRID - 1 - jnp.argmax(inside[::-1])
        done = (inside.sum() >= _FILLED) | (rounds + 1 >= _ROUNDS)
        low, high = points[jnp.maximum(first - 1, 0)], points[jnp.minimum(last + 1, _GRID - 1)]
        return low, high, at_low & (first <= 1), at_high & (last >= _GRID - 2), rounds + 1, done

    search = low, high, jnp.asarray(True), jnp.asarray(True), jnp.asarray(0), jnp.asarray(False)
    low, high, at_low, at_high, _, _ = jax.lax.while_loop(lambda search: ~search[-1], narrow, search)
    low, high = _moving_with(bounds[0], low, at_low), _moving_with(bounds[1], high, at_high)
    nodes = low + (high - low) * (jnp.asarray(_NODES, low.dtype) + 1) / 2
    return nodes, jax.nn.softmax(log_density(nodes) + jnp.log(jnp.asarray(_WEIGHTS, low.dtype)))


def _moving_with(bound: Float[Array, ""], end: Float[Array, ""], at_bound: Bool[Array, ""]) -> Float[Array, ""]:
    """Return `end`, with the derivative of the bound where the search has ended on it."""
    moving = bound - jax.lax.stop_gradient(bound)  # zero, with derivative one
    return end + jnp.where(at_bound, moving, jnp.zeros_like(moving))
