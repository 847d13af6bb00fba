"""64-bit mode: work in 64 bits, whatever JAX's own mode is."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def in_64_bits() -> Iterator[None]:
    """Turn on JAX's 64-bit mode inside a `with` block, in this thread; afterwards it is as it was.

    >>> import jax.numpy as jnp
    >>> with in_64_bits():
    ...     jnp.ones(1).dtype
    dtype('float64')
    """
    if jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        yield
        return
    if hasattr(jax, "enable_x64"):
        enable = jax.enable_x64
    else:  # before jax 0.8
        from jax.experimental import enable_x64 as enable  # pyright: ignore[reportAttributeAccessIssue]
    with enable(True):
        yield
