"""The layer recursion: how a linear transformer moves its tokens, in terms of their Gram matrix alone.

Every layer moves all tokens, the query included, by one matrix `T = I + Σₖ Pₖ G Qₖ`. The matrix
`C = T … T` that has moved them since the input is the implicit linear model of Theorem 4.1,
`C = [[M, u], [−wᵀ, a]]`, and Lemma 4.3 is the line `C ← T C`.

Each function has two implementations: plain JAX, which is the reference and runs anywhere, and the native
kernel, which is used on CPUs where it is there. Both give the same numbers to rounding. The native one
can be differentiated in reverse; for forward mode, ask for `native=False`.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from lintra import native as kernel

Gram = Float[Array, "*batch e e"]


def recursion(
    p: Float[Array, "layers heads e e"], q: Float[Array, "layers heads e e"], gram: Gram, *, native: bool = True
) -> Float[Array, "*batch d"]:
    """The implicit weights after the last layer, for any P and Q of Eq. (3) and any number of contexts."""
    if native and kernel.covers(p, q, gram):
        return _in_one_batch(partial(_full, p, q), gram)
    return -recursion_states(p, q, gram, native=False)[..., -1, -1, :-1]


def recursion_states(
    p: Float[Array, "layers heads e e"], q: Float[Array, "layers heads e e"], gram: Gram, *, native: bool = True
) -> Float[Array, "*batch layers e e"]:
    """The matrix C after every layer, for any P and Q of Eq. (3)."""

    def transition(layer: tuple[Array, Array], gram: Float[Array, "e e"]) -> Float[Array, "e e"]:
        p, q = layer
        return jnp.eye(gram.shape[-1], dtype=gram.dtype) + jnp.sum(p @ gram @ q, axis=0)

    def plain(gram: Gram) -> Float[Array, "b layers e e"]:
        return jax.vmap(partial(_run, transition, (p, q)))(gram)

    if native and kernel.covers(p, q, gram):
        return _in_one_batch(partial(_states, p, q), gram)
    return _in_one_batch(plain, gram)


def diagonal_recursion(
    omega: Float[Array, "layers 2 2"], gram: Gram, *, native: bool = True
) -> Float[Array, "*batch d"]:
    """The implicit weights after the last layer when P and Q are diagonal, Eq. (10).

    A layer is `[[ω_xx, ω_xy], [ω_yx, ω_yy]]`.
    """
    if native and kernel.covers(omega, gram):
        return _in_one_batch(partial(_diagonal, omega), gram)
    return -diagonal_states(omega, gram, native=False)[..., -1, -1, :-1]


def diagonal_slopes(
    omega: Float[Array, "layers 2 2"],
    gram: Float[Array, "b e e"],
    slope: Float[Array, "b d"],
    *,
    native: bool = True,
) -> Float[Array, "b layers 2 2"]:
    """For every context, the slope in the ω of `⟨slope, w⟩`, where w are the weights after the last layer."""
    if native and kernel.covers(gram):
        return kernel.diagonal_reverse(omega[None], gram[None], slope[None])[0][0]

    def along(omega: Array, gram: Float[Array, "e e"], slope: Float[Array, " d"]) -> Float[Array, ""]:
        return diagonal_recursion(omega, gram, native=False) @ slope

    return jax.vmap(jax.grad(along), in_axes=(None, 0, 0))(omega, gram, slope)


def diagonal_states(
    omega: Float[Array, "layers 2 2"], gram: Gram, *, native: bool = True
) -> Float[Array, "*batch layers e e"]:
    """The matrix C after every layer when P and Q are diagonal.

    With diagonal matrices `P G Q` multiplies each block of G by its own ω. To the kernel it is two heads of full
    matrices, one for what inputs do and one for what labels do.
    """
    dim = gram.shape[-1] - 1
    block = jnp.asarray([0] * dim + [1])
    if native and kernel.covers(omega, gram):
        eye = jnp.eye(dim + 1, dtype=omega.dtype)
        p = jnp.moveaxis(omega, -1, -2)[:, :, block, None] * eye
        q = jnp.broadcast_to(jnp.eye(2, dtype=omega.dtype)[:, block, None] * eye, p.shape)
        return recursion_states(p, q, gram)

    def transition(omega: Float[Array, "2 2"], gram: Float[Array, "e e"]) -> Float[Array, "e e"]:
        return jnp.eye(dim + 1, dtype=gram.dtype) + omega[block][:, block] * gram

    return _in_one_batch(jax.vmap(partial(_run, transition, omega)), gram)


def spectral_recursion(
    rates: Float[Array, "layers 2"], eigenvalues: Float[Array, "*k"]
) -> tuple[Float[Array, "layers *k"], Float[Array, "layers *k"]]:
    """The polynomial f of GD++ after every layer, `w = f(Σ) α`, at eigenvalues s of Σ, and `1 − s f`.

    A layer is `[ω_xx, ω_yx]`. The kernel's part in this is `objective.polynomial_loss`.
    """

    def step(state: tuple[Array, ...], rate: Float[Array, "2"]) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
        m, f, rho = state  # M, f and 1 − s f in Σ's eigenbasis
        z = m**2 * eigenvalues
        f, rho = f - rate[1] * m**2 * rho, rho * (1 + rate[1] * z)
        return (m * (1 + rate[0] * z), f, rho), (f, rho)

    start: tuple[Array, ...] = (
        jnp.ones_like(eigenvalues),
        jnp.zeros_like(eigenvalues),
        jnp.ones_like(eigenvalues),
    )
    return jax.lax.scan(step, start, rates)[1]


def _run(
    transition: Callable[..., Float[Array, "e e"]], layers: PyTree[Array], gram: Float[Array, "e e"]
) -> Float[Array, "layers e e"]:
    def step(state: tuple[Array, Array], layer: PyTree[Array]) -> tuple[tuple[Array, Array], Array]:
        gram, moved = state
        t = transition(layer, gram)
        moved = t @ moved  # Lemma 4.3
        return (t @ gram @ t.T, moved), moved

    start = (gram, jnp.eye(gram.shape[-1], dtype=gram.dtype))
    return jax.lax.scan(step, start, layers)[1]


def _in_one_batch(function: Callable[[Array], Array], gram: Gram) -> Array:
    """Call a function of Gram matrices `(b, e, e)` with any leading axes."""
    result = function(gram.reshape(-1, *gram.shape[-2:]))
    return result.reshape(*gram.shape[:-2], *result.shape[1:])


@jax.custom_vjp
def _full(p: Array, q: Array, gram: Float[Array, "b e e"]) -> Float[Array, "b d"]:
    return kernel.full_forward(p[None], q[None], gram[None])[0][0]


def _full_reverse(inputs: tuple[Array, Array, Array], slope: Float[Array, "b d"]) -> tuple[Array, Array, Array]:
    p, q, gram = inputs
    p_slope, q_slope = kernel.full_reverse(p[None], q[None], gram[None], slope[None])
    return p_slope[0], q_slope[0], _gram_slope(partial(recursion, p, q, native=False), gram, slope)


_full.defvjp(lambda p, q, gram: (_full(p, q, gram), (p, q, gram)), _full_reverse)


@jax.custom_vjp
def _diagonal(omega: Array, gram: Float[Array, "b e e"]) -> Float[Array, "b d"]:
    return kernel.diagonal_forward(omega[None], gram[None])[0][0]


def _diagonal_reverse(inputs: tuple[Array, Array], slope: Float[Array, "b d"]) -> tuple[Array, Array]:
    omega, gram = inputs
    (omega_slope,) = kernel.diagonal_reverse(omega[None], gram[None], slope[None])
    return omega_slope[0].sum(axis=0), _gram_slope(partial(diagonal_recursion, omega, native=False), gram, slope)


_diagonal.defvjp(lambda omega, gram: (_diagonal(omega, gram), (omega, gram)), _diagonal_reverse)


@jax.custom_vjp
def _states(p: Array, q: Array, gram: Float[Array, "b e e"]) -> Float[Array, "b layers e e"]:
    return kernel.full_states(p[None], q[None], gram[None])[0][0]


def _states_reverse(inputs: tuple[Array, Array, Array], slope: Array) -> tuple[Array, Array, Array]:
    return jax.vjp(partial(recursion_states, native=False), *inputs)[1](slope)


_states.defvjp(lambda p, q, gram: (_states(p, q, gram), (p, q, gram)), _states_reverse)


def _gram_slope(function: Callable[[Array], Array], gram: Float[Array, "b e e"], slope: Array) -> Array:
    """The slope in the Gram matrix, in plain JAX; compiled code that does not use it, as in training, drops it."""
    return jax.vjp(function, gram)[1](slope)[0]
