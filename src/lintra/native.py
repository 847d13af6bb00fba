"""The native kernel: a small C++ library, called by XLA on its own threads, one sequence per vector lane.

Arrays come as `(sets, …)`, where a set is one model's parameters, and data as `(sets or 1, …)`: Gram matrices
`(sets or 1, batch, d+1, d+1)`, or eigenvalues and their masses `(sets or 1, count)`. `vmap` makes more sets; it
never runs the kernel in a loop.
"""

import ctypes
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

_LIBRARY = Path(__file__).with_name("_native.so")
_HANDLERS = (
    "full_forward",
    "full_states",
    "full_reverse",
    "full_descent",
    "diagonal_forward",
    "diagonal_reverse",
    "diagonal_descent",
    "polynomial_descent",
    "gram",
)
_BITS = {"float32": "f32", "float64": "f64"}


@cache
def _library() -> ctypes.CDLL | None:
    """Load the library, register its handlers with XLA and call each once.

    Returns:
        The library. `None` where it is turned off, and, with one warning, after a failure of any kind.
    """
    if os.environ.get("LINTRA_NATIVE") == "0":
        return None
    try:
        library = ctypes.CDLL(str(_LIBRARY))
        library.lintra_isa.restype = ctypes.c_char_p
        library.lintra_limit_threads.argtypes = (ctypes.c_int64,)
        # The first use may be inside a trace, where a call would only be recorded. Traces and context managers
        # such as `jax.disable_jit` belong to a thread, so a new thread is free of all of them.
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(_register, library).result()
    except Exception as error:  # not built, left by an older version, or built for a newer XLA than this one
        warnings.warn(
            f"lintra's native kernel cannot be used ({error}); plain JAX is used, which gives the same numbers "
            "more slowly. Install lintra again where there is a C++ compiler to have it built.",
            stacklevel=2,
        )
        return None
    return library


def _register(library: ctypes.CDLL) -> None:
    """Register all handlers with XLA, and call each of them once.

    Registration compares the version of XLA's interface that a handler was compiled for with XLA's own. JAX does
    so at once only after the CPU's backend exists. Before that it would queue the handlers, and a failure would
    leave JAX without a backend. Hence `local_devices` comes first.
    """
    device = jax.local_devices(backend="cpu")[0]
    for name in _HANDLERS:
        for bits in _BITS.values():
            target = f"lintra_{name}_{bits}"
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(getattr(library, target)), platform="cpu")
    with jax.default_device(device):
        # One program with all calls, since compiling takes nearly all of the time
        jax.block_until_ready(jax.jit(_call_each)())


def _call_each() -> list[tuple[Array, ...]]:
    """Call every handler on one context of one input, with one layer and one head."""
    results = []
    for dtype in sorted(
        {"float32", jnp.result_type(float).name}
    ):  # without JAX_ENABLE_X64 there is only the first
        p, square, row, scalar = (
            jnp.ones(shape, dtype) for shape in ((1, 1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 1), (1,))
        )
        results += [
            _full_forward(p, p, square),
            _full_states(p, p, square),
            _full_reverse(p, p, square, row),
            _full_descent(p, p, square, row, scalar),
            _diagonal_forward(square, square),
            _diagonal_reverse(square, square, row),
            _diagonal_descent(square, square, row, scalar),
            _polynomial_descent(square[0], row[0], row[0], scalar),
            (gram(row, row[0]),),
        ]
    return results


def covers(*arrays: Float[Array, "..."]) -> bool:
    """Tell whether the kernel can be used for these data and parameters, on this machine."""
    if jax.default_backend() != "cpu" or _library() is None:
        return False
    names = {array.dtype.name for array in arrays}
    if len(names) == 1 and names <= _BITS.keys():
        return True
    _say_not_covered(", ".join(sorted(names)))
    return False


@cache
def _say_not_covered(names: str) -> None:
    warnings.warn(
        f"lintra's native kernel takes arrays that are all float32 or all float64, not {names}; plain JAX is "
        "used, which is slower.",
        stacklevel=4,
    )


def instruction_set() -> str | None:
    """The instruction set the kernel runs on: `base`, `v3` (AVX2) or `v4` (AVX-512); none without a kernel."""
    library = _library()
    return None if library is None else library.lintra_isa().decode()


def limit_threads(count: int | None) -> None:
    """Let the kernel use at most this many threads, or all that XLA has; numbers stay the same to the last bit."""
    library = _library()
    if library is not None:
        library.lintra_limit_threads(2**62 if count is None else count)


def _call(name: str, shapes: tuple[tuple[int, ...], ...], *arrays: Array) -> tuple[Array, ...]:
    dtype = arrays[0].dtype
    results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)
    return tuple(jax.ffi.ffi_call(f"lintra_{name}_{_BITS[dtype.name]}", results)(*arrays))


def _fold(function: Callable[..., tuple[Array, ...]], data: set[int]) -> Callable[..., tuple[Array, ...]]:
    """Let `vmap` turn its axis into more sets. Data that all sets share, at the given places, stays shared."""
    batched = custom_vmap(function)

    @batched.def_vmap
    def rule(axis_size: int, in_batched: list[bool], *arrays: Array) -> tuple[tuple[Array, ...], tuple[bool, ...]]:
        pairs = list(zip(arrays, in_batched, strict=True))
        sets = max(array.shape[1] if is_batched else array.shape[0] for array, is_batched in pairs)

        def fold(array: Array, is_batched: bool, is_data: bool) -> Array:
            if is_data and not is_batched and array.shape[0] == 1:
                return array
            rest = array.shape[2:] if is_batched else array.shape[1:]
            array = array if is_batched else array[None]
            return jnp.broadcast_to(array, (axis_size, sets, *rest)).reshape(axis_size * sets, *rest)

        results = batched(*(fold(*pair, index in data) for index, pair in enumerate(pairs)))
        results = tuple(result.reshape(axis_size, sets, *result.shape[1:]) for result in results)
        return results, tuple(True for _ in results)

    return batched


def _check_model(name: str, parameters: Array, gram: Array, form: str, fits: bool) -> None:
    """Reject parameters that are not of the form given, and Gram matrices that are not square."""
    if not fits or 0 in parameters.shape[1:]:
        raise ValueError(f"`{name}` must have shape {form} with at least one of each, got {parameters.shape[1:]}.")
    if gram.ndim != 4 or gram.shape[2] != gram.shape[3] or gram.shape[3] < 2:
        raise ValueError(f"`gram` must have shape (..., d+1, d+1) with d ≥ 1, got {gram.shape[1:]}.")


def _check_rows(name: str, rows: Array, gram: Array) -> None:
    """Reject targets or slopes that are not one vector of d numbers for every Gram matrix."""
    expected = (gram.shape[1], gram.shape[2] - 1)
    if rows.shape[1:] != expected:
        raise ValueError(f"`{name}` must have shape {expected} to fit `gram`, got {rows.shape[1:]}.")


def _check_omega(omega: Array, gram: Array) -> None:
    _check_model("omega", omega, gram, "(layers, 2, 2)", omega.ndim == 4 and omega.shape[2:] == (2, 2))


def _pair(p: Array, q: Array, gram: Array) -> Array:
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
    return jnp.stack([p, q], axis=1)


def _full_forward(p: Array, q: Array, gram: Array) -> tuple[Array, ...]:
    pair = _pair(p, q, gram)
    return _call("full_forward", ((p.shape[0], gram.shape[1], gram.shape[2] - 1),), pair, gram)


def _full_states(p: Array, q: Array, gram: Array) -> tuple[Array, ...]:
    pair = _pair(p, q, gram)
    return _call("full_states", ((p.shape[0], gram.shape[1], p.shape[1], *gram.shape[2:]),), pair, gram)


def _full_reverse(p: Array, q: Array, gram: Array, slope: Array) -> tuple[Array, ...]:
    pair = _pair(p, q, gram)
    _check_rows("slope", slope, gram)
    (pair_slope,) = _call("full_reverse", (pair.shape,), pair, gram, slope)
    return pair_slope[:, 0], pair_slope[:, 1]


def _full_descent(p: Array, q: Array, gram: Array, target: Array, clip: Array) -> tuple[Array, ...]:
    pair = _pair(p, q, gram)
    _check_rows("target", target, gram)
    losses, pair_slope = _call("full_descent", ((p.shape[0], gram.shape[1]), pair.shape), pair, gram, target, clip)
    return losses, pair_slope[:, 0], pair_slope[:, 1]


def _diagonal_forward(omega: Array, gram: Array) -> tuple[Array, ...]:
    _check_omega(omega, gram)
    return _call("diagonal_forward", ((omega.shape[0], gram.shape[1], gram.shape[2] - 1),), omega, gram)


def _diagonal_reverse(omega: Array, gram: Array, slope: Array) -> tuple[Array, ...]:
    _check_omega(omega, gram)
    _check_rows("slope", slope, gram)
    return _call("diagonal_reverse", ((omega.shape[0], gram.shape[1], *omega.shape[1:]),), omega, gram, slope)


def _diagonal_descent(omega: Array, gram: Array, target: Array, clip: Array) -> tuple[Array, ...]:
    _check_omega(omega, gram)
    _check_rows("target", target, gram)
    losses, slopes = (omega.shape[0], gram.shape[1]), (omega.shape[0], gram.shape[1], *omega.shape[1:])
    return _call("diagonal_descent", (losses, slopes), omega, gram, target, clip)


def _polynomial_descent(rates: Array, eigenvalues: Array, masses: Array, noise_var: Array) -> tuple[Array, ...]:
    if rates.ndim != 3 or rates.shape[1] == 0 or rates.shape[2] != 2:
        raise ValueError(f"`rates` must have shape (layers, 2) with at least one layer, got {rates.shape[1:]}.")
    shapes = (rates.shape[:1], rates.shape)
    return _call("polynomial_descent", shapes, rates, eigenvalues, masses, noise_var)


def gram(x: Float[Array, "b n d"], y: Float[Array, "b n"]) -> Float[Array, "b e e"]:
    """Gram matrices of the tokens (x, y) of many contexts, summed in their precision."""
    if x.ndim != 3 or x.shape[2] == 0 or y.shape != x.shape[:2]:
        raise ValueError(
            f"`x` and `y` must have shapes (b, n, d) and (b, n) with d ≥ 1, got {x.shape} and {y.shape}."
        )
    size = x.shape[2] + 1
    return _call("gram", ((x.shape[0], size, size),), x, y)[0]


full_forward = _fold(_full_forward, data={2})
full_states = _fold(_full_states, data={2})
full_reverse = _fold(_full_reverse, data={2})
full_descent = _fold(_full_descent, data={2, 3})
diagonal_forward = _fold(_diagonal_forward, data={1})
diagonal_reverse = _fold(_diagonal_reverse, data={1})
diagonal_descent = _fold(_diagonal_descent, data={1, 2})
polynomial_descent = _fold(_polynomial_descent, data={1, 2})
