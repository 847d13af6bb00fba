"""Sequences in blocks: each block has its own key, and the next ones are computed while one is read."""

import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from lintra.runtime.progress import SILENT, Progress

Result = TypeVar("Result")
BlockFunction = Callable[[Key[Array, ""]], Result]
"""Computes a block from its key."""


class BlockLosses(eqx.Module):
    """Losses of one block of b sequences, by name of the predictor.

    Attributes:
        adjusted: Loss above the oracle's, exact in the query.
        unadjusted: Loss, exact in the query; the oracle's is under `oracle`.
        protocol: Loss above the oracle's at one sampled query; empty unless asked for.
        worse_than_zero: Whether predicting zero would have been better.
    """

    adjusted: dict[str, Float[Array, "_layers b"]]
    unadjusted: dict[str, Float[Array, "_layers b"]]
    protocol: dict[str, Float[Array, "_layers b"]]
    worse_than_zero: dict[str, Bool[Array, "_layers b"]]


def block_size(dim: int) -> int:
    """Number of sequences in a block, which does not depend on the number of sequences asked for.

    >>> block_size(10), block_size(100)
    (8192, 512)
    """
    fitting = 2**23 // (dim + 1) ** 2  # a matrix per sequence takes 64 MiB
    return min(8192, 2 ** max(fitting.bit_length() - 1, 4))


def map_blocks(
    function: BlockFunction[Result],
    num_blocks: int,
    key: Key[Array, ""],
    progress: Progress = SILENT,
) -> Iterator[tuple[int, Result]]:
    """Yield the index and the result of every block in order, with the next blocks already under way.

    Blocks are not computed in several threads: programs that run at once share XLA's threads, and the kernel
    waits for some of them.

    Args:
        function: Computes a block from its key.
        num_blocks: Number of blocks.
        key: Randomness; block i has `fold_in(key, i)`.
        progress: Told after every block.

    Yields:
        The index of a block, and its result as NumPy arrays.
    """
    progress.start("measuring", num_blocks)
    pending: deque[tuple[int, Result]] = deque()
    for index in range(num_blocks + 2):
        if index < num_blocks:
            pending.append((index, function(jax.random.fold_in(key, index))))
        if index >= 2 and pending:
            done, result = pending.popleft()
            yield done, jax.tree.map(np.asarray, result)
            progress.update(done + 1)


def fold_in_words(key: Key[Array, ""], *words: str) -> Key[Array, ""]:
    """Return the key of what the words name, such as a measurement. The words choose the random stream.

    >>> bool(fold_in_words(jax.random.key(0), "a", "b") == fold_in_words(jax.random.key(0), "a b"))
    True
    """
    return jax.random.fold_in(key, zlib.crc32(" ".join(words).encode()))
