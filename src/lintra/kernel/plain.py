"""Plain JAX in place of the native kernel, for derivatives that the kernel does not have."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import jax


class _Switch(Protocol):
    """A value of the current thread that JAX takes into account when it looks up compiled programs."""

    @property
    def value(self) -> bool: ...

    def __call__(self, new_value: bool, /) -> AbstractContextManager[object]: ...


class ClearingSwitch:
    """A switch for versions of JAX without `make_user_context`: at every change it drops all compiled programs."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def value(self) -> bool:
        """Whether the switch is on, in this thread."""
        return getattr(self._local, "value", False)

    @contextmanager
    def __call__(self, new_value: bool, /) -> Iterator[None]:
        """Set the value inside a `with` block."""
        before = self.value
        self._set(new_value)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, value: bool) -> None:
        if value != self.value:
            jax.clear_caches()
        self._local.value = value


_switch: _Switch = jax.make_user_context(False) if hasattr(jax, "make_user_context") else ClearingSwitch()


@contextmanager
def plain_jax() -> Iterator[None]:
    """Use plain JAX formulas instead of the native kernel, so that every derivative exists.

    Outside, predictors have first derivatives in reverse mode (`jax.grad`, `jax.vjp`), which is what training
    needs. Inside, `jax.jvp`, `jax.jacfwd`, `jax.hessian` and all others work too. Numbers are the same to
    rounding, and speed is that of plain JAX. Programs that were compiled inside are never used outside, nor the
    other way round. It holds for the current thread.

    >>> import jax, lintra
    >>> stats, _ = lintra.sample_statistics(lintra.NoisyRegression())
    >>> model = lintra.zoo.load("diag-3-uniform(0,5)")
    >>> def weights(gram):
    ...     return model.weights(lintra.GramStatistics(gram, stats.num_examples))
    >>> with lintra.plain_jax():
    ...     jacobian = jax.jacfwd(weights)(stats.gram)
    >>> jacobian.shape
    (10, 11, 11)
    """
    with _switch(True):
        yield


def is_plain() -> bool:
    """Whether `plain_jax` is in force."""
    return _switch.value
