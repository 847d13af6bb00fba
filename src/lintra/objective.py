"""Losses, exact in the query: with `x_query ~ N(0, Λ)` the mean of `½ ⟨Δ, x⟩²` is `½ ΔᵀΛΔ`.

The distances are what training lowers: the mean over sequences of `½‖w − target‖²`. Their slope can be
clipped per sequence, that is, `∂loss/∂w` of each sequence is shortened to at most `clip` before it goes back
through the layers, so that a sequence on which a deep model explodes cannot own a step. Data is not
differentiated.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra import checks
from lintra import native as kernel
from lintra.recursion import diagonal_recursion, recursion, spectral_recursion


def half_square(
    difference: Float[Array, "*batch d"], covariance: Float[Array, "d d"] | None = None
) -> Float[Array, "*batch"]:
    """`½ ΔᵀΛΔ` for differences Δ of weights; nothing for Λ means the identity.

    >>> half_square(jnp.asarray([3.0, 4.0]))
    Array(12.5, dtype=float64)
    """
    if covariance is None:
        return 0.5 * jnp.sum(difference**2, axis=-1)
    return 0.5 * jnp.einsum("...i,ij,...j->...", difference, covariance, difference)


def full_distance(
    p: Float[Array, "layers heads e e"],
    q: Float[Array, "layers heads e e"],
    gram: Float[Array, "b e e"],
    target: Float[Array, "b d"],
    *,
    clip: float | None = None,
    native: bool = True,
) -> Float[Array, ""]:
    """Mean distance to the target for FULL; the kernel makes it and its slope in one pass."""
    if native and kernel.covers(gram):
        return _full(p, q, gram, target, _limit(clip, gram))
    return _plain_distance(partial(recursion, p, q, native=False), gram, target, clip)


def diagonal_distance(
    omega: Float[Array, "layers 2 2"],
    gram: Float[Array, "b e e"],
    target: Float[Array, "b d"],
    *,
    clip: float | None = None,
    native: bool = True,
) -> Float[Array, ""]:
    """Mean distance to the target for DIAG and GD++, from the ω of every layer."""
    if native and kernel.covers(gram):
        return _diagonal(omega, gram, target, _limit(clip, gram))
    return _plain_distance(partial(diagonal_recursion, omega, native=False), gram, target, clip)


def probed_distance(
    weights: Float[Array, "b d"],
    target: Float[Array, "b d"],
    probe: Float[Array, "b k d"] | None,
    *,
    clip: float | None = None,
) -> Float[Array, ""]:
    """Mean over sequences of `½ Σₖ ⟨probeₖ, w − target⟩²`, with the slope in w clipped as everywhere.

    One probe is a sampled query, Eqs. (6) and (7); the rows of Λ's root are the average over all queries;
    nothing stands for the identity.
    """
    difference = jax.lax.stop_gradient(weights - target)
    if probe is None:
        loss, slope = half_square(difference), difference
    else:
        errors = jnp.einsum("bkd,bd->bk", probe, difference)
        loss, slope = half_square(errors), jnp.einsum("bkd,bk->bd", probe, errors)
    if clip is not None:
        length = jnp.sqrt(jnp.sum(slope**2, axis=-1, keepdims=True))
        tiny = jnp.finfo(length.dtype).tiny
        slope = slope * jnp.minimum(1, checks.positive("clip", clip) / jnp.maximum(length, tiny))
    pull = jnp.sum(slope * weights, axis=-1)  # its slope in w is `slope`, and its value is taken out again
    return jnp.mean(loss + pull - jax.lax.stop_gradient(pull))


def polynomial_loss(
    rates: Float[Array, "layers 2"],
    eigenvalues: Float[Array, "*k"],
    masses: float | Float[Array, "..."],
    noise_var: float | Float[Array, ""],
    *,
    native: bool = True,
) -> Float[Array, ""]:
    """`Σ masses ½ [(1 − s f)² + noise_var s f²]` for GD++, f its polynomial of Σ after the last layer.

    Masses of 1/batch make it the mean loss over sequences with these eigenvalues, those of a quadrature the
    exact loss. With a Gram matrix divided by n, eigenvalues and `noise_var` are divided by n as well.
    """
    masses = jnp.broadcast_to(jnp.asarray(masses, eigenvalues.dtype), eigenvalues.shape)
    noise_var = jnp.asarray(noise_var, eigenvalues.dtype)
    if native and kernel.covers(rates, eigenvalues):
        return _polynomial(rates, eigenvalues.ravel(), masses.ravel(), noise_var)
    eigenvalues, masses, noise_var = jax.lax.stop_gradient((eigenvalues, masses, noise_var))
    f, rho = (values[-1] for values in spectral_recursion(rates, eigenvalues))
    return 0.5 * jnp.sum(masses * (rho**2 + noise_var * eigenvalues * f**2))


def _limit(clip: float | None, gram: Float[Array, "b e e"]) -> Float[Array, ""]:
    """The clip as the kernel takes it, where zero stands for none."""
    return jnp.asarray(0.0 if clip is None else checks.positive("clip", clip), gram.dtype)


def _plain_distance(
    weigh: Callable[[Array], Float[Array, "b d"]],
    gram: Float[Array, "b e e"],
    target: Float[Array, "b d"],
    clip: float | None,
) -> Float[Array, ""]:
    return probed_distance(weigh(jax.lax.stop_gradient(gram)), target, None, clip=clip)


@jax.custom_vjp
def _full(p: Array, q: Array, gram: Array, target: Array, clip: Array) -> Float[Array, ""]:
    return half_square(recursion(p, q, gram) - target).mean()


def _full_forward(
    p: Array, q: Array, gram: Array, target: Array, clip: Array
) -> tuple[Array, tuple[Array, Array]]:
    losses, p_slope, q_slope = kernel.full_descent(p[None], q[None], gram[None], target[None], clip[None])
    return losses[0].mean(), (p_slope[0] / len(gram), q_slope[0] / len(gram))


_full.defvjp(_full_forward, lambda slopes, scale: (scale * slopes[0], scale * slopes[1], None, None, None))


@jax.custom_vjp
def _diagonal(omega: Array, gram: Array, target: Array, clip: Array) -> Float[Array, ""]:
    return half_square(diagonal_recursion(omega, gram) - target).mean()


def _diagonal_forward(omega: Array, gram: Array, target: Array, clip: Array) -> tuple[Array, Array]:
    losses, slopes = kernel.diagonal_descent(omega[None], gram[None], target[None], clip[None])
    return losses[0].mean(), slopes[0].mean(axis=0)


_diagonal.defvjp(_diagonal_forward, lambda slope, scale: (scale * slope, None, None, None))


@jax.custom_vjp
def _polynomial(rates: Array, eigenvalues: Array, masses: Array, noise_var: Array) -> Float[Array, ""]:
    return _polynomial_forward(rates, eigenvalues, masses, noise_var)[0]


def _polynomial_forward(
    rates: Array, eigenvalues: Array, masses: Array, noise_var: Array
) -> tuple[Array, Float[Array, "layers 2"]]:
    loss, slope = kernel.polynomial_descent(rates[None], eigenvalues[None], masses[None], noise_var[None])
    return loss[0], slope[0]


_polynomial.defvjp(_polynomial_forward, lambda slope, scale: (scale * slope, None, None, None))
