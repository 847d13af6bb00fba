"""Many contexts as people have them: one array, arrays of many lengths, or statistics; read as Gram matrices."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from lintra.statistics.examples import Data, Examples
from lintra.statistics.gram import GramStatistics

_CHUNK = 2**24  # bytes that are read at once, about: small enough that memory is used again

Part = slice | np.ndarray
"""Some contexts of a group."""

Kind = Callable[[int, int], Hashable]
"""What kind of context so many inputs and so many examples make; contexts of one kind are solved alike."""


@dataclass(frozen=True)
class Group:
    """Contexts of one kind, and of about one length where they have arrays of their own.

    Attributes:
        places: Their places in the answer.
        counts: Their numbers of examples.
        size: Bytes of one of them, about.
        read: Some of them, in a precision or in their own.
    """

    places: np.ndarray
    counts: np.ndarray
    size: int
    read: Callable[[Part, type | None], Data]


def groups(x: Any, y: Any, kind: Kind) -> tuple[list[Group], int, np.dtype]:
    """The contexts by kind, the number of inputs, and the precision of the answer."""
    if isinstance(x, GramStatistics):
        if y is not None:
            raise ValueError("`y` must be left out where `x` is the statistics of contexts.")
        if x.gram.ndim != 3:
            raise ValueError(f"`x` must be statistics of shape (contexts, d+1, d+1), got {x.gram.shape}.")
        gram, counts = np.asarray(x.gram), np.asarray(x.count)
        alike = _alike(counts, lambda count: kind(x.dim, count))
        return [_of_statistics(gram, counts, places) for places in alike], x.dim, gram.dtype
    if y is None:
        raise ValueError("`y` must be given with `x`.")
    if not _is_ragged(x):
        x, y = _numbers("x", x), _numbers("y", y)
        if x.ndim != 3 or y.shape != x.shape[:2] or 0 in x.shape[1:]:
            raise ValueError(
                "`x` and `y` must have shapes (contexts, n, d) and (contexts, n), with at least one example of "
                f"one input, got {x.shape} and {y.shape}."
            )
        dtype = np.result_type(x, y)
        if not len(x):
            return [], x.shape[2], dtype
        places, counts = np.arange(len(x)), np.full(len(x), x.shape[1])
        whole = _of_data(x.astype(dtype, copy=False), y.astype(dtype, copy=False), counts, places)
        return [whole], x.shape[2], dtype
    if not isinstance(y, list | tuple | np.ndarray) or len(x) != len(y):
        raise ValueError(
            f"`x` and `y` must have one array a context, got {len(x)} and "
            f"{len(y) if hasattr(y, '__len__') else type(y).__name__}."
        )
    return _ragged([_numbers("x", part) for part in x], [_numbers("y", part) for part in y], kind)


def _ragged(xs: list[np.ndarray], ys: list[np.ndarray], kind: Kind) -> tuple[list[Group], int, np.dtype]:
    """Contexts of up to twice one another's length together, filled up with zeros, which say nothing."""
    dim = xs[0].shape[-1] if xs[0].ndim == 2 else 0
    for place, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if x.ndim != 2 or y.shape != x.shape[:1] or x.shape[1] != dim or 0 in x.shape:
            raise ValueError(
                f"`x` and `y` of context {place} must have shapes (n, {dim or 'd'}) and (n,), with n at least 1, "
                f"got {x.shape} and {y.shape}."
            )
    dtype, lengths = np.result_type(*xs, *ys), np.asarray([len(x) for x in xs])
    groups = []
    for places in _alike(lengths, lambda count: (power_of_two(count), kind(dim, count))):
        width = power_of_two(int(lengths[places[0]]))
        x, y = np.zeros((len(places), width, dim), dtype), np.zeros((len(places), width), dtype)
        for row, place in enumerate(places):
            x[row, : lengths[place]], y[row, : lengths[place]] = xs[place], ys[place]
        groups.append(_of_data(x, y, lengths[places], places))
    return groups, dim, dtype


def _of_data(x: np.ndarray, y: np.ndarray, counts: np.ndarray, places: np.ndarray) -> Group:
    def read(part: Part, dtype: type | None) -> Examples:
        own_x, own_y = (np.asarray(data[part], dtype) for data in (x, y))  # by NumPy, which compiles nothing
        return Examples(jnp.asarray(own_x), jnp.asarray(own_y), jnp.asarray(counts[part]))

    gram = (x.shape[2] + 1) ** 2 * x.itemsize
    return Group(places, counts, max(x[0].nbytes + y[0].nbytes, gram), read)


def _of_statistics(gram: np.ndarray, counts: np.ndarray, places: np.ndarray) -> Group:
    if len(places) < len(gram):
        gram, counts = gram[places], counts[places]

    def read(part: Part, dtype: type | None) -> GramStatistics:
        return GramStatistics(jnp.asarray(np.asarray(gram[part], dtype)), jnp.asarray(counts[part]))

    return Group(places, counts, gram[0].nbytes, read)


def _alike(counts: np.ndarray, key: Callable[[int], Hashable]) -> list[np.ndarray]:
    """Places whose counts have the same key."""
    values, inverse = np.unique(counts, return_inverse=True)
    keys = [key(int(value)) for value in values]
    numbers = {own: number for number, own in enumerate(dict.fromkeys(keys))}
    number = np.asarray([numbers[own] for own in keys], dtype=int)[inverse]
    return [np.flatnonzero(number == own) for own in range(len(numbers))]


def power_of_two(count: int) -> int:
    """The least power of two that holds so many.

    >>> [power_of_two(count) for count in (1, 4, 5)]
    [1, 4, 8]
    """
    return 1 << (count - 1).bit_length()


def parts(group: Group) -> list[slice]:
    """A group in chunks: a power of two of contexts in each, as many as fit."""
    step = 2 ** int(math.log2(max(_CHUNK // group.size, 1)))
    return [slice(start, start + step) for start in range(0, len(group.places), step)]


def _is_ragged(x: Any) -> bool:
    """Whether there is an array of its own for every context."""
    return isinstance(x, list | tuple) and len(x) > 0 and all(np.ndim(part) == 2 for part in x)


def _numbers(name: str, value: Any) -> np.ndarray:
    """As an array of 32 or 64 bits; whether all are finite is seen later, by their sums."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"`{name}` must be an array of numbers, or a list of one for every context: {error}"
        ) from None
    if array.dtype in (np.float32, np.float64):
        return array
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise ValueError(f"`{name}` must hold real numbers, got dtype {array.dtype}.")
    return array.astype(float)
