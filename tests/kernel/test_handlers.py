"""The kernel checks its arguments: a wrong shape ends in a sentence, from Python or from XLA, never in a crash."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lintra.kernel import library
from wrong_shapes import SIGNATURES

HERE = Path(__file__).parent.parent
TARGETS = [f"{name}_{bits}" for name in library._HANDLERS for bits in library._BITS.values()]


def _run(*command):
    """In a process of its own, so that a crash fails one test alone."""
    run = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)
    assert run.returncode == 0, f"ended with {run.returncode}: {run.stderr[-1000:]}"
    return run.stdout


def _attack(calls, *targets):
    results = json.loads(_run(HERE / "wrong_shapes.py", calls, *targets))
    assert results == {target: {"rejected": calls, "passed": calls // 10, "failures": []} for target in targets}


def test_every_handler_has_a_signature():
    assert SIGNATURES.keys() == set(library._HANDLERS)


def test_every_handler_rejects_wrong_shapes():
    _attack(20, *TARGETS)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_handler_rejects_a_thousand_wrong_shapes(target):
    _attack(1000, target)


HUGE = """
import jax, numpy as np
from lintra.kernel import library
assert library.instruction_set() is not None
def call(name, result, *shapes):
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    result = jax.ShapeDtypeStruct(result, np.float32)
    jax.ffi.ffi_call(name, result, has_side_effect=True)(*arrays).block_until_ready()
for name, result, *shapes in [
    # no memory is needed where an axis is zero, so sizes can be anything
    ("lintra_full_forward_f32", (0, 1, 46340), (0, 2, 1, 1, 46341, 46341), (0, 1, 2), (0, 1, 46341, 46341)),
    ("lintra_full_forward_f32", (0, 1, 1), (0, 2, 2**16, 2**16, 2, 2), (0, 2**16, 2), (0, 1, 2, 2)),
    ("lintra_diagonal_forward_f32", (0, 1, 1), (0, 2**32 + 1, 2, 2), (0, 2**32 + 1, 2), (0, 1, 2, 2)),
    ("lintra_gram_f32", (0, 46341, 46341), (0, 1, 46340), (0, 1)),
]:
    try:
        call(name, result, *shapes)
    except jax.errors.JaxRuntimeError as error:
        assert "are too many" in str(error), error
        print("rejected")
"""


def test_sizes_beyond_the_kernels_integers_are_rejected():
    assert _run("-c", HUGE).split() == ["rejected"] * 4


MEMORY = """
import resource
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from lintra.kernel import library
assert library.instruction_set() is not None
p, gram = np.zeros((1, 2, 1, 400, 101, 101)), np.zeros((1, 300, 101, 101))
p, ranges, gram = jax.device_put((p, np.full((1, 1, 3), np.inf), gram))
call = jax.jit(jax.ffi.ffi_call("lintra_full_forward_f64", jax.ShapeDtypeStruct((1, 300, 100), float)))
call = call.lower(p, ranges, gram).compile()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**26, -1))  # slopes alone need 65 MB per lane of a vector
try:
    call(p, ranges, gram).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are Linux's")
def test_lack_of_memory_is_an_error():
    assert _run("-c", MEMORY).startswith("RESOURCE_EXHAUSTED: lintra's native kernel has no memory")
