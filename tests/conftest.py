import os

# Tests compile thousands of small programs and run each a few times, so most optimisations of XLA cost more than
# they gain, and the older emitters of fused loops compile three times as fast. Processes that tests start inherit
# this. It must be set before JAX is imported.
os.environ["XLA_FLAGS"] = " ".join(
    (
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=0",
        "--xla_cpu_use_fusion_emitters=false",
    )
).strip()

import jax
import pytest
from hypothesis import settings

from lintra.cli import main
from untrained_zoo import Measured, quick_tuning, write_untrained_zoo

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
settings.register_profile("lintra", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("lintra")


def pytest_collection_modifyitems(items):
    """The longest first, so that parallel processes end together."""
    items.sort(key=lambda item: item.path.parts[-2:] != ("sweep", "test_scheduler.py"))


@pytest.fixture
def error_message(monkeypatch, capsys):
    """The error message of a command that rejects its arguments, with an empty standard output."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["lintra", *(str(argument) for argument in arguments)])
        with pytest.raises(SystemExit, match="2"):
            main()
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "Traceback" not in printed.err
        return printed.err

    return call


@pytest.fixture
def getkey():
    """Fresh keys, the same ones in every run."""
    keys = iter(jax.random.split(jax.random.key(2402_14180), 100))
    return lambda: next(keys)


@pytest.fixture(name="quick_tuning")
def _quick_tuning():
    """See `quick_tuning`, in a whole test."""
    with quick_tuning():
        yield


@pytest.fixture(scope="session")
def small_zoo(tmp_path_factory):
    """The file of a zoo of untrained models."""
    path = tmp_path_factory.mktemp("zoo") / "zoo.safetensors"
    write_untrained_zoo(path)
    return path


@pytest.fixture(scope="session")
def results(small_zoo):
    """Measurements on the zoo of untrained models, each made once."""
    return Measured(small_zoo)
