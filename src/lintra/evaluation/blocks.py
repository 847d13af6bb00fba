"""Sequences in blocks: each is drawn from its own key while the one before is measured."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Array, Key

from lintra.runtime.progress import Track

Result = TypeVar("Result")


def block_size(dim: int) -> int:
    """Sequences are drawn in blocks of this size, each from its own key, whatever number is asked for.

    >>> block_size(10), block_size(100)
    (8192, 512)
    """
    fitting = 2**23 // (dim + 1) ** 2  # a matrix per sequence takes 64 MiB
    return min(8192, 2 ** max(fitting.bit_length() - 1, 4))


def in_order(
    block: Callable[[Key[Array, ""]], Result], count: int, key: Key[Array, ""], track: Track | None
) -> Iterator[tuple[int, Result]]:
    """Blocks in order, each from its own key, with the next ones already under way.

    Not from several threads: programs that run at once share XLA's threads, and the kernel waits for some of them.
    """
    indices = range(count) if track is None else track(range(count), count)
    waiting: deque[tuple[int, Result]] = deque()
    for index in indices:
        waiting.append((index, block(jax.random.fold_in(key, index))))
        if len(waiting) > 2:
            ready, result = waiting.popleft()
            yield ready, jax.tree.map(np.asarray, result)
    for ready, result in waiting:
        yield ready, jax.tree.map(np.asarray, result)
