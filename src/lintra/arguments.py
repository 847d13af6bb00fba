"""Arguments that are validated: an error names the argument and the value."""

import math
import operator
from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Key

_LARGEST = 2**63 - 1  # of the integers in arrays

KeyLike = int | Key[Array, ""]
"""Randomness: a whole number from 0 on, or a key of `jax.random.key`."""


def random_key(value: KeyLike, name: str = "key") -> Key[Array, ""]:
    """Return `value` as a key of JAX, or reject it.

    >>> bool(random_key(3) == jax.random.key(3))
    True
    """
    if isinstance(value, jax.Array):
        if not jnp.issubdtype(value.dtype, jax.dtypes.prng_key) or value.shape:
            raise ValueError(
                f"`{name}` must be a whole number or one key of `jax.random.key`, got an array of type "
                f"{value.dtype} and shape {value.shape}."
            )
        return value
    return jax.random.key(whole_number(name, value, minimum=0))


def whole_number(name: str, value: Any, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum` and below 2^63, or reject it.

    >>> whole_number("dim", 10)
    10
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"`{name}` must be a whole number, got {value!r}.") from None
    if isinstance(value, bool) or number < minimum:
        raise ValueError(f"`{name}` must be a whole number of at least {minimum}, got {value!r}.")
    if number > _LARGEST:
        raise ValueError(f"`{name}` must be below 2^63, got {value!r}.")
    return number


def noise_std(name: str, value: Any) -> float:
    """Return `value` as a standard deviation (finite, not negative), or reject it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a number, got {value!r}.") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"`{name}` is a standard deviation and must be finite and not negative, got {value!r}.")
    return number + 0.0  # so that -0 becomes 0


def one_of(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of the choices, or reject it.

    >>> one_of("family", "full", ("full", "diag"))
    'full'
    """
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}.")
    return value


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite number above zero, or reject it.

    >>> positive("clip_norm", 1)
    1.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a number, got {value!r}.") from None
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"`{name}` must be finite and above zero, got {value!r}.")
    return number


TO_64_BITS = 'Add `jax.config.update("jax_enable_x64", True)` after `import jax`'
"""What to do where 64-bit mode is needed and off."""


def is_64_bit() -> bool:
    """Whether JAX's 64-bit mode is on, here and now."""
    return jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]


def require_64_bits(work: str) -> None:
    """Refuse to do in 32 bits what needs 64."""
    if not is_64_bit():
        raise ValueError(f"{work} needs JAX's 64-bit mode, which is off. {TO_64_BITS}.")


def require_precision(name: str, array: Any) -> None:
    """Refuse 64-bit numbers where JAX would compute with them in 32 bits."""
    if array.dtype == np.float64 and not is_64_bit():
        raise ValueError(
            f"`{name}` holds 64-bit numbers, but JAX's 64-bit mode is off. {TO_64_BITS}, or convert `{name}` to "
            "float32."
        )


def in_one_precision(*arrays: Array) -> tuple[Array, ...]:
    """Return floating-point arrays in the widest precision among them.

    >>> [array.dtype.name for array in in_one_precision(jnp.ones(1, "float32"), jnp.ones(1, "float64"))]
    ['float64', 'float64']
    """
    widest = max((array.dtype for array in arrays), key=lambda dtype: jnp.finfo(dtype).bits)
    return tuple(array if array.dtype == widest else array.astype(widest) for array in arrays)


def concrete(array: Any) -> np.ndarray | None:
    """The values of an array, or `None` while JAX is tracing it.

    Checks look at these in NumPy, since inside a transformation even a known JAX array answers unknown.
    """
    return None if isinstance(array, Tracer) else np.asarray(array)


def counts(name: str, value: ArrayLike) -> Array:
    """Return `value` as an array of whole numbers of at least 1, or reject it (tracers pass unseen)."""
    array = value if isinstance(value, jax.Array) else np.asarray(value)
    values, whole = concrete(array), jnp.issubdtype(array.dtype, jnp.integer)
    if not whole or (values is not None and (values < 1).any()):
        raise ValueError(f"`{name}` must hold whole numbers of at least 1, got {value!r}.")
    return jnp.asarray(array, dtype=int)


def real_array(name: str, value: ArrayLike) -> Array:
    """Return `value` as a finite floating-point array, or reject it (tracers pass unseen)."""
    try:
        array = value if isinstance(value, jax.Array) else np.asarray(value)
    except ValueError as error:
        raise ValueError(f"`{name}` must be an array of numbers: {error}") from None
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise ValueError(f"`{name}` must hold real numbers, got dtype {array.dtype}.")
    values = concrete(array)
    if values is not None and not np.isfinite(values).all():
        bad = int(values.size - np.isfinite(values).sum())
        raise ValueError(f"`{name}` must be finite, got {bad} NaN or infinite of {values.size} values.")
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(jnp.result_type(float))
    if isinstance(value, np.ndarray):
        require_precision(name, array)
    return jnp.asarray(array)
