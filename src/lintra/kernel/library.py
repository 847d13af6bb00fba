"""The native library: loaded, registered with XLA, and batched by `vmap`."""

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

from lintra.kernel.plain import is_plain
from lintra.kernel.precision import in_64_bits

_LIBRARY = Path(__file__).with_name("_native.so")
_HANDLERS = (
    "full_forward",
    "full_states",
    "full_vjp",
    "full_value_and_grad",
    "diagonal_forward",
    "diagonal_vjp",
    "diagonal_value_and_grad",
    "polynomial_value_and_grad",
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
    with in_64_bits(), jax.default_device(device):
        # One program with all calls, since compiling takes nearly all of the time
        jax.block_until_ready(jax.jit(_call_each)())


def _call_each() -> list[tuple[Array, ...]]:
    """Call every handler on one context of one input, with one layer and one head."""
    results = []
    for dtype in _BITS:
        pair, square, row, scalar = (
            jnp.ones(shape, dtype) for shape in ((1, 2, 1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 1), (1,))
        )
        rates, values, losses, ranges = square[0], row[0], (1, 1), jnp.ones((1, 1, 3), dtype)
        results += [
            call_handler("full_forward", (row.shape,), pair, ranges, square),
            call_handler("full_states", ((1, 1, 1, 2, 2),), pair, ranges, square),
            call_handler("full_vjp", (pair.shape,), pair, ranges, square, row),
            call_handler("full_value_and_grad", (losses, pair.shape), pair, ranges, square, row, scalar),
            call_handler("diagonal_forward", (row.shape,), square, ranges, square),
            call_handler("diagonal_vjp", ((1, 1, 1, 2, 2),), square, ranges, square, row),
            call_handler(
                "diagonal_value_and_grad", (losses, (1, 1, 1, 2, 2)), square, ranges, square, row, scalar
            ),
            call_handler("polynomial_value_and_grad", ((1,), rates.shape), rates, values, values, scalar),
            call_handler("gram", ((1, 2, 2),), row, values),
        ]
    return results


def supports(*arrays: Float[Array, "..."]) -> bool:
    """Tell whether the kernel can be used for these data and parameters, on this machine and in this context."""
    if is_plain() or jax.default_backend() != "cpu" or _library() is None:
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


def call_handler(name: str, shapes: tuple[tuple[int, ...], ...], *arrays: Array) -> tuple[Array, ...]:
    """Call a handler of the library.

    Args:
        name: Its name without precision, such as `full_forward`.
        shapes: Shapes of its results.
        *arrays: Its arguments, all float32 or all float64.

    Returns:
        Its results, in the precision of the arguments.
    """
    dtype = arrays[0].dtype
    results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)
    return tuple(jax.ffi.ffi_call(f"lintra_{name}_{_BITS[dtype.name]}", results)(*arrays))


def fold_vmap(function: Callable[..., tuple[Array, ...]], data: set[int]) -> Callable[..., tuple[Array, ...]]:
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
