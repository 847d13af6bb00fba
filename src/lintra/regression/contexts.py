"""Contexts as arrays, lists of arrays or statistics, in groups of one width and in padded chunks."""

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lintra.statistics.examples import Data, Examples
from lintra.statistics.gram import GramStatistics

By = Callable[[int, int], Hashable]
"""A function of `(dim, num_examples)`. Contexts with equal values are in one group."""


@dataclass(frozen=True)
class ContextGroup:
    """Contexts that are solved alike. Lists of arrays also have about one length, and are padded with zeros.

    Attributes:
        data: The contexts, as NumPy arrays of one dtype.
        indices: Their positions in the answer, shape (contexts,).
    """

    data: Data
    indices: np.ndarray

    @property
    def num_bytes(self) -> int:
        """Size of one context or of its Gram matrix, whichever is larger."""
        if isinstance(self.data, GramStatistics):
            return self.data.gram[0].nbytes
        x, y = self.data.x, self.data.y
        return max(x[0].nbytes + y[0].nbytes, (x.shape[2] + 1) ** 2 * x.dtype.itemsize)


@dataclass(frozen=True)
class Grouped:
    """All contexts.

    Attributes:
        groups: The contexts in groups.
        dim: Number of inputs, d.
        dtype: Precision of the data, and of the answer.
    """

    groups: list[ContextGroup]
    dim: int
    dtype: np.dtype

    @property
    def num_contexts(self) -> int:
        """Number of contexts in all groups."""
        return sum(len(group.indices) for group in self.groups)

    @property
    def num_examples(self) -> np.ndarray:
        """Number of examples of each context, in the order of the groups."""
        return np.concatenate([np.asarray(group.data.num_examples) for group in self.groups])


@dataclass(frozen=True)
class Chunk:
    """Some contexts of a group.

    Attributes:
        data: The contexts. The last one is repeated until their number is a power of two.
        indices: Positions of the contexts in the answer, without the repeated ones, shape (num_real,).
        num_real: Number of contexts without the repeated ones.
    """

    data: Data
    indices: np.ndarray
    num_real: int


def group_contexts(x: Any, y: Any, *, by: By) -> Grouped:
    """Check contexts and put them into groups.

    Args:
        x: Inputs, shape (contexts, n, d); or a list of one array (n, d) for each context; or statistics.
        y: Labels, shape (contexts, n); or a list of one array (n,) for each context; or `None` with statistics.
        by: Contexts are in one group if `by(dim, num_examples)` is the same.

    Returns:
        The groups, the number of inputs and the dtype.

    Raises:
        ValueError: If shapes do not match, or data is not numeric.
    """
    if isinstance(x, GramStatistics):
        return _group_statistics(x, y, by)
    if y is None:
        raise ValueError("`y` must be given with `x`.")
    if isinstance(x, list | tuple) and len(x) > 0 and all(np.ndim(context) == 2 for context in x):
        return _group_ragged(*check_ragged(x, y), by)
    x, y = check_dense(x, y)
    num_contexts, num_examples, dim = x.shape
    group = _examples_group(x, y, np.full(num_contexts, num_examples), np.arange(num_contexts))
    return Grouped([group] if num_contexts else [], dim, x.dtype)


def check_dense(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return contexts of one length as two arrays of one dtype, of 32 or 64 bits.

    Args:
        x: Inputs, shape (contexts, n, d).
        y: Labels, shape (contexts, n).

    Raises:
        ValueError: If shapes do not match, or data is not numeric.
    """
    x, y = _real_array("x", x), _real_array("y", y)
    if x.ndim != 3 or y.shape != x.shape[:2] or 0 in x.shape[1:]:
        raise ValueError(
            "`x` and `y` must have shapes (contexts, n, d) and (contexts, n), with at least one example of "
            f"one input, got {x.shape} and {y.shape}."
        )
    dtype = np.result_type(x, y)
    return x.astype(dtype, copy=False), y.astype(dtype, copy=False)


def check_ragged(xs: Any, ys: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return contexts of several lengths as two lists of arrays.

    Args:
        xs: Inputs of each context, shapes (n, d) with one d for all.
        ys: Labels of each context, shapes (n,).

    Raises:
        ValueError: If lengths or shapes do not match, or data is not numeric.
    """
    if not isinstance(ys, list | tuple | np.ndarray) or len(xs) != len(ys):
        raise ValueError(
            f"`x` and `y` must have one array for each context, got {len(xs)} and "
            f"{len(ys) if hasattr(ys, '__len__') else type(ys).__name__}."
        )
    xs, ys = [_real_array("x", x) for x in xs], [_real_array("y", y) for y in ys]
    dim = xs[0].shape[-1] if xs[0].ndim == 2 else 0
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if x.ndim != 2 or y.shape != x.shape[:1] or x.shape[1] != dim or 0 in x.shape:
            raise ValueError(
                f"`x` and `y` of context {index} must have shapes (n, {dim or 'd'}) and (n,), with n at least 1, "
                f"got {x.shape} and {y.shape}."
            )
    return xs, ys


def padded_chunks(group: ContextGroup, max_size: int) -> Iterator[Chunk]:
    """Yield a group in chunks, padded to powers of two of contexts so that programs are compiled for few sizes.

    Args:
        group: The contexts.
        max_size: Size of a chunk in bytes at most, unless a single context is larger.
    """
    for rows in chunk_rows(group, max_size):
        data = take(group.data, pad_rows(rows))
        yield Chunk(data, group.indices[rows], len(rows))


def chunk_rows(group: ContextGroup, max_size: int) -> list[np.ndarray]:
    """Return the rows of a group that each of its chunks has."""
    step = 2 ** int(math.log2(max(max_size // group.num_bytes, 1)))
    rows = np.arange(len(group.indices))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def pad_rows(rows: np.ndarray) -> np.ndarray:
    """Repeat the last of several rows until their number is a power of two.

    >>> pad_rows(np.asarray([3, 5, 8]))
    array([3, 5, 8, 8])
    """
    return np.pad(rows, (0, power_of_two(len(rows)) - len(rows)), mode="edge")


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`.

    >>> [power_of_two(number) for number in (1, 4, 5)]
    [1, 4, 8]
    """
    return 1 << (number - 1).bit_length()


def take(data: Data, rows: np.ndarray, dtype: type | None = None) -> Data:
    """Return some contexts.

    Args:
        data: Contexts.
        rows: Their rows in `data`.
        dtype: Precision of the result. `None` (default): that of `data`.
    """
    is_slice = np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows)))
    selection = slice(rows[0], rows[0] + len(rows)) if is_slice else rows

    def take_rows(leaf: Any) -> jax.Array:
        # By NumPy, which compiles nothing. A slice is a view, not a copy.
        values = np.asarray(leaf)[selection]
        return jnp.asarray(
            values.astype(dtype or values.dtype, copy=False) if values.dtype.kind == "f" else values
        )

    return jax.tree.map(take_rows, data)


def _group_statistics(stats: GramStatistics, y: Any, by: By) -> Grouped:
    if y is not None:
        raise ValueError("`y` must be left out where `x` is the statistics of contexts.")
    if stats.gram.ndim != 3:
        raise ValueError(f"`x` must be statistics of shape (contexts, d+1, d+1), got {stats.gram.shape}.")
    gram: Any = np.asarray(stats.gram)
    num_examples: Any = np.asarray(stats.num_examples)
    groups = _indices_by(num_examples, lambda number: by(stats.dim, number))
    if len(groups) == 1:  # all contexts, without a copy
        return Grouped([ContextGroup(GramStatistics(gram, num_examples), groups[0])], stats.dim, gram.dtype)
    parts = [ContextGroup(GramStatistics(gram[rows], num_examples[rows]), rows) for rows in groups]
    return Grouped(parts, stats.dim, gram.dtype)


def _group_ragged(xs: list[np.ndarray], ys: list[np.ndarray], by: By) -> Grouped:
    """Group contexts of up to twice one another's length, padded with zeros, which do not change Gram matrices."""
    dim, dtype, lengths = xs[0].shape[1], np.result_type(*xs, *ys), np.asarray([len(x) for x in xs])
    groups = []
    for indices in _indices_by(lengths, lambda length: (power_of_two(length), by(dim, length))):
        width = power_of_two(int(lengths[indices[0]]))
        x, y = np.zeros((len(indices), width, dim), dtype), np.zeros((len(indices), width), dtype)
        for row, index in enumerate(indices):
            x[row, : lengths[index]], y[row, : lengths[index]] = xs[index], ys[index]
        groups.append(_examples_group(x, y, lengths[indices], indices))
    return Grouped(groups, dim, dtype)


def _examples_group(x: Any, y: Any, num_examples: Any, indices: np.ndarray) -> ContextGroup:
    return ContextGroup(Examples(x, y, num_examples), indices)


def _indices_by(num_examples: np.ndarray, key: Callable[[int], Hashable]) -> list[np.ndarray]:
    """Return the indices of contexts whose numbers of examples have the same key, key by key."""
    values, inverse = np.unique(num_examples, return_inverse=True)
    keys = [key(int(value)) for value in values]
    positions = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    of_context = np.asarray([positions[key] for key in keys], dtype=int)[inverse]
    return [np.flatnonzero(of_context == position) for position in range(len(positions))]


def _real_array(name: str, value: Any) -> np.ndarray:
    """Return an array of 32 or 64 bits. Whether values are finite is seen later, by their sums."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"`{name}` must be an array of numbers, or a list of one array for each context: {error}"
        ) from None
    if array.dtype in (np.float32, np.float64):
        return array
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise ValueError(f"`{name}` must hold real numbers, got dtype {array.dtype}.")
    return array.astype(float)
