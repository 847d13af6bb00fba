"""The native kernel: a small C++ library, called by XLA on its own threads, one sequence per vector lane.

Arrays come as `(sets, …)`, where a set is one model's parameters, and data as `(sets or 1, …)`: Gram matrices
`(sets or 1, batch, d+1, d+1)`, or eigenvalues and their weights `(sets or 1, count)`. `vmap` makes more sets; it
never runs the kernel in a loop.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra.kernel.library import call_handler, fold_vmap


def _check_model(name: str, parameters: Array, gram: Array, form: str, fits: bool) -> None:
    """Reject parameters that are not of the form given, and Gram matrices that are not square."""
    if not fits or 0 in parameters.shape[1:]:
        raise ValueError(f"`{name}` must have shape {form} with at least one of each, got {parameters.shape[1:]}.")
    if gram.ndim != 4 or gram.shape[2] != gram.shape[3] or gram.shape[3] < 2:
        raise ValueError(f"`gram` must have shape (..., d+1, d+1) with d ≥ 1, got {gram.shape[1:]}.")


def _check_rows(name: str, rows: Array, gram: Array) -> None:
    """Reject targets or cotangents that are not one vector of d numbers for every Gram matrix."""
    expected = (gram.shape[1], gram.shape[2] - 1)
    if rows.shape[1:] != expected:
        raise ValueError(f"`{name}` must have shape {expected} to fit `gram`, got {rows.shape[1:]}.")


def _check_omega(omega: Array, ranges: Array, gram: Array) -> None:
    _check_model("omega", omega, gram, "(layers, 2, 2)", omega.ndim == 4 and omega.shape[2:] == (2, 2))
    _check_ranges(ranges, omega.shape[1])


def _check_ranges(ranges: Array, num_layers: int) -> None:
    if ranges.shape[1:] != (num_layers, 3):
        raise ValueError(f"`ranges` must have shape {(num_layers, 3)}, got {ranges.shape[1:]}.")


def _pair(p: Array, q: Array, ranges: Array, gram: Array) -> Array:
    """P and Q as the kernel takes them, of shape (sets, 2, layers, heads, d+1, d+1)."""
    for name, matrix in (("p", p), ("q", q)):
        square = matrix.ndim == 5 and matrix.shape[3] == matrix.shape[4]
        _check_model(name, matrix, gram, "(layers, heads, d+1, d+1)", square)
    if p.shape != q.shape:
        raise ValueError(f"`p` and `q` must have the same shape, got {p.shape[1:]} and {q.shape[1:]}.")
    if p.shape[-1] != gram.shape[-1]:
        raise ValueError(
            f"P and Q are for d = {p.shape[-1] - 1} inputs, the Gram matrices for {gram.shape[-1] - 1}."
        )
    _check_ranges(ranges, p.shape[1])
    return jnp.stack([p, q], axis=1)


def _full_forward(p: Array, q: Array, ranges: Array, gram: Array) -> tuple[Array, ...]:
    pair = _pair(p, q, ranges, gram)
    return call_handler("full_forward", ((p.shape[0], gram.shape[1], gram.shape[2] - 1),), pair, ranges, gram)


def _full_states(p: Array, q: Array, ranges: Array, gram: Array) -> tuple[Array, ...]:
    pair = _pair(p, q, ranges, gram)
    return call_handler(
        "full_states", ((p.shape[0], gram.shape[1], p.shape[1], *gram.shape[2:]),), pair, ranges, gram
    )


def _full_vjp(p: Array, q: Array, ranges: Array, gram: Array, cotangent: Array) -> tuple[Array, ...]:
    pair = _pair(p, q, ranges, gram)
    _check_rows("cotangent", cotangent, gram)
    (pair_gradient,) = call_handler("full_vjp", (pair.shape,), pair, ranges, gram, cotangent)
    return pair_gradient[:, 0], pair_gradient[:, 1]


def _full_value_and_grad(
    p: Array, q: Array, ranges: Array, gram: Array, target: Array, clip_norm: Array
) -> tuple[Array, ...]:
    pair = _pair(p, q, ranges, gram)
    _check_rows("target", target, gram)
    losses, pair_gradient = call_handler(
        "full_value_and_grad", ((p.shape[0], gram.shape[1]), pair.shape), pair, ranges, gram, target, clip_norm
    )
    return losses, pair_gradient[:, 0], pair_gradient[:, 1]


def _diagonal_forward(omega: Array, ranges: Array, gram: Array) -> tuple[Array, ...]:
    _check_omega(omega, ranges, gram)
    return call_handler(
        "diagonal_forward", ((omega.shape[0], gram.shape[1], gram.shape[2] - 1),), omega, ranges, gram
    )


def _diagonal_vjp(omega: Array, ranges: Array, gram: Array, cotangent: Array) -> tuple[Array, ...]:
    _check_omega(omega, ranges, gram)
    _check_rows("cotangent", cotangent, gram)
    return call_handler(
        "diagonal_vjp", ((omega.shape[0], gram.shape[1], *omega.shape[1:]),), omega, ranges, gram, cotangent
    )


def _diagonal_value_and_grad(
    omega: Array, ranges: Array, gram: Array, target: Array, clip_norm: Array
) -> tuple[Array, ...]:
    _check_omega(omega, ranges, gram)
    _check_rows("target", target, gram)
    losses, gradients = (omega.shape[0], gram.shape[1]), (omega.shape[0], gram.shape[1], *omega.shape[1:])
    return call_handler("diagonal_value_and_grad", (losses, gradients), omega, ranges, gram, target, clip_norm)


def _polynomial_value_and_grad(
    rates: Array, eigenvalues: Array, node_weights: Array, noise_var: Array
) -> tuple[Array, ...]:
    if rates.ndim != 3 or rates.shape[1] == 0 or rates.shape[2] != 2:
        raise ValueError(f"`rates` must have shape (layers, 2) with at least one layer, got {rates.shape[1:]}.")
    shapes = (rates.shape[:1], rates.shape)
    return call_handler("polynomial_value_and_grad", shapes, rates, eigenvalues, node_weights, noise_var)


def gram(x: Float[Array, "b n d"], y: Float[Array, "b n"]) -> Float[Array, "b e e"]:
    """Gram matrices of the tokens (x, y) of many contexts, summed in their precision."""
    if x.ndim != 3 or x.shape[2] == 0 or y.shape != x.shape[:2]:
        raise ValueError(
            f"`x` and `y` must have shapes (b, n, d) and (b, n) with d ≥ 1, got {x.shape} and {y.shape}."
        )
    size = x.shape[2] + 1
    return call_handler("gram", ((x.shape[0], size, size),), x, y)[0]


full_forward = fold_vmap(_full_forward, data={3})
full_states = fold_vmap(_full_states, data={3})
full_vjp = fold_vmap(_full_vjp, data={3})
full_value_and_grad = fold_vmap(_full_value_and_grad, data={3, 4})
diagonal_forward = fold_vmap(_diagonal_forward, data={2})
diagonal_vjp = fold_vmap(_diagonal_vjp, data={2})
diagonal_value_and_grad = fold_vmap(_diagonal_value_and_grad, data={2, 3})
polynomial_value_and_grad = fold_vmap(_polynomial_value_and_grad, data={1, 2})
