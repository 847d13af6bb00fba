import atexit
import gc
import itertools
import os
import shutil
import tempfile
from pathlib import Path

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

# All processes of a test run share a cache folder of their own, so that they never see the user's.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["LINTRA_CACHE"] = tempfile.mkdtemp(prefix="lintra-tests-")
    atexit.register(shutil.rmtree, os.environ["LINTRA_CACHE"], ignore_errors=True)

import jax
import pytest
from hypothesis import settings

from lintra.cli import main
from untrained_zoo import Measured, quick_tuning, write_untrained_zoo

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
settings.register_profile("lintra", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("lintra")


# The tests of most CPU time. The sweeps by processes and by a cluster wait for that by shards.
_LONGEST = (
    "test_shards_make_all_cells",
    "test_a_second_start_completes_what_crashed",
    "test_processes_make_the_same_bytes_even_when_one_is_killed",
    "test_annotations_hold_under_a_runtime_type_checker",
    "test_a_cluster_makes_the_same_bytes_even_when_a_worker_is_killed",
    "test_what_is_measured_trained_and_fitted_has_64_bits_whatever_the_mode",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The longest first, so that parallel processes end together.

    Two processes begin with an eighth of the tests each, and take further tests when they have done these.
    """
    longest = sorted((i for i in items if i.name in _LONGEST), key=lambda item: _LONGEST.index(item.name))
    others = [item for item in items if item.name not in _LONGEST]
    first = longest[::2]
    begin = max(len(items) // 8 - len(first), 0)
    items[:] = [*first, *others[:begin], *longest[1::2], *others[begin:]]


_MAPS = Path("/proc/self/maps")
_MAX_MAPS = 40_000  # Linux allows 65,530, and XLA crashes when it cannot load a program. A program has about nine.
_COUNT_EVERY = 10  # tests, since counting 40,000 maps takes 20 ms
_num_tests = itertools.count(1)


@pytest.fixture(autouse=True)
def _few_memory_maps():
    """Forget compiled programs before their memory maps are too many."""
    yield
    if next(_num_tests) % _COUNT_EVERY == 0 and _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MAX_MAPS:
        jax.clear_caches()
        gc.collect()


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
