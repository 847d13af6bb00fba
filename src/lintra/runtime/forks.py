"""Detection of forked processes, in which JAX hangs instead of computing."""

import os

from jax._src import xla_bridge

_forked = False


def check_not_forked() -> None:
    """Raise an error in a process that was forked after JAX had started its threads.

    Raises:
        RuntimeError: If a JAX backend was initialised before this process was forked. The threads of a
            backend do not exist in the child, so that its first computation would wait forever.
    """
    if _forked:
        raise RuntimeError(
            "JAX was used before this process was forked, and JAX does not survive a fork: "
            "use multiprocessing's 'spawn' start method."
        )


def _mark_child() -> None:
    """Remember, in a forked child, whether the parent had used JAX; an earlier fork is harmless."""
    global _forked
    initialised = getattr(xla_bridge, "backends_are_initialized", None)
    _forked = _forked or initialised is None or initialised()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_mark_child)
