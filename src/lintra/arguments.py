"""Refusals: the sentences that answer bad input, each naming the argument and the value."""

import math
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike

_LARGEST = 2**63 - 1  # of the integers in arrays


def whole_number(name: str, value: Any, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum` and below 2^63, or refuse it.

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
    """Return `value` as a standard deviation (finite, not negative), or refuse it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a number, got {value!r}.") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"`{name}` is a standard deviation and must be finite and not negative, got {value!r}.")
    return number + 0.0  # so that -0 becomes 0


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of the choices, or refuse it.

    >>> one_of("variant", "full", ("full", "diag"))
    'full'
    """
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}.")
    return value


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite number above zero, or refuse it.

    >>> positive("clip", 1)
    1.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a number, got {value!r}.") from None
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"`{name}` must be finite and above zero, got {value!r}.")
    return number


def require_64_bits() -> None:
    """Refuse to measure losses in 32 bits."""
    if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise ValueError("Losses are measured in 64 bits, but JAX_ENABLE_X64 turns them off.")


def concrete(array: Any) -> np.ndarray | None:
    """The values of an array that can be looked at; nothing while JAX is tracing it.

    Checks look at these in NumPy, since inside a transformation even a known JAX array answers unknown.
    """
    return None if isinstance(array, Tracer) else np.asarray(array)


def counts(name: str, value: ArrayLike) -> Array:
    """Return `value` as an array of whole numbers of at least 1, or refuse it (tracers pass unseen)."""
    array = value if isinstance(value, jax.Array) else np.asarray(value)
    values, whole = concrete(array), jnp.issubdtype(array.dtype, jnp.integer)
    if not whole or (values is not None and (values < 1).any()):
        raise ValueError(f"`{name}` must hold whole numbers of at least 1, got {value!r}.")
    return jnp.asarray(array, dtype=int)


def real_array(name: str, value: ArrayLike) -> Array:
    """Return `value` as a finite floating-point array, or refuse it (tracers pass unseen)."""
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
    return jnp.asarray(array)
