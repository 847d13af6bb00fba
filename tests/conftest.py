import jax
import pytest
from hypothesis import settings

import lintra  # noqa: F401  (turns on 64 bits before any array is made)

jax.config.update("jax_numpy_dtype_promotion", "strict")
settings.register_profile("lintra", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("lintra")


@pytest.fixture
def getkey():
    """Fresh keys, the same ones in every run."""
    keys = iter(jax.random.split(jax.random.key(2402_14180), 100))
    return lambda: next(keys)
