"""The native library: it is built, and whatever is wrong with it at its first use, the numbers come."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

from kernel_helpers import close, inputs
from lintra.kernel import library
from lintra.models.diagonal import diagonal_recursion
from lintra.models.full import full_recursion as recursion
from lintra.models.gdpp import polynomial_loss


def test_the_kernel_was_built():
    """Where this fails, no C++ compiler was found, and tests of `operations` compare JAX with itself."""
    assert library.instruction_set() in ("base", "v3", "v4")


SUMS = """
import sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import lintra
from lintra.kernel import library
from lintra.models.diagonal import diagonal_recursion
from lintra.models.full import full_recursion as recursion
from lintra.models.gdpp import polynomial_loss
rng = np.random.default_rng(0)
p, q = (jnp.asarray(0.1 * rng.normal(size=(3, 1, 11, 11))) for _ in range(2))
x = rng.normal(size=(1000, 20, 11))
gram = jnp.asarray(np.einsum("bni,bnj->bij", x, x) / 20)
omega = jnp.asarray(0.1 * rng.normal(size=(3, 2, 2)))
full = jax.jit(jax.grad(lambda p: jnp.sum(recursion(p, q, gram) ** 2)))(p)
diagonal = jax.jit(jax.grad(lambda omega: jnp.sum(diagonal_recursion(omega, gram) ** 2)))(omega)
eigenvalues = jnp.asarray(rng.uniform(0, 3, size=10_000))
polynomial = jax.jit(jax.grad(polynomial_loss))(omega[:, 0], eigenvalues, eigenvalues, 0.4)
isa = np.asarray(str(library.instruction_set()))
np.savez(sys.argv[1], full=full, diagonal=diagonal, polynomial=polynomial, isa=isa)
"""


def _child(path, **environment):
    command = [sys.executable, "-c", SUMS, str(path)]
    run = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return np.load(path)


def test_sums_do_not_depend_on_the_number_of_threads():
    p, q, omega, gram, _ = inputs(5, 3, 1, jnp.float32, batch=3000)
    eigenvalues = jnp.linalg.eigvalsh(gram).ravel()

    def loss(p, q, omega):
        total = jnp.sum(recursion(p, q, gram)) + jnp.sum(diagonal_recursion(omega, gram))
        return total + polynomial_loss(omega[:, 0], eigenvalues, 1.0, 0.4)

    value_and_gradient = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))
    try:
        library.limit_threads(1)
        one = jax.tree.leaves(value_and_gradient(p, q, omega))
        library.limit_threads(None)
        assert all(map(np.array_equal, one, jax.tree.leaves(value_and_gradient(p, q, omega))))
    finally:
        library.limit_threads(None)


def test_every_instruction_set_and_plain_jax_give_the_same_numbers(tmp_path):
    best = _child(tmp_path / "best.npz")
    for isa in ("base", "v3"):
        other = _child(tmp_path / f"{isa}.npz", LINTRA_ISA=isa)
        assert str(other["isa"]) in ("base", isa)
        for name in ("full", "diagonal", "polynomial"):
            assert close(other[name], best[name], jnp.float64)
    plain = _child(tmp_path / "plain.npz", LINTRA_NATIVE="0")
    assert str(plain["isa"]) == "None"
    for name in ("full", "diagonal", "polynomial"):
        assert close(plain[name], best[name], jnp.float64)


# A library with the kernel's names, whose handlers claim another version of XLA's interface or fail when called.
LIBRARY = r"""
#include <string.h>
#include "xla/ffi/api/c_api.h"

static XLA_FFI_Error* handle(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* metadata = ((XLA_FFI_Metadata_Extension*)frame->extension_start)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = MINOR;
    return 0;
  }
  XLA_FFI_Error_Create_Args error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  error.message = "no such luck";
  error.errc = XLA_FFI_Error_Code_INTERNAL;
  return frame->api->XLA_FFI_Error_Create(&error);
}
const char* lintra_isa() { return "none"; }
void lintra_limit_threads(long long count) {}
"""
CHILD = """
import json, sys, warnings
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import lintra
from lintra.kernel import library as native
from lintra.models.full import full_recursion as recursion
p, gram = 0.1 * np.ones((2, 1, 3, 3)), np.ones((4, 3, 3))
results, values = [], []
for code, library in json.loads(sys.argv[1]):
    native._library.cache_clear()
    if library:
        jax.clear_caches()
        native._LIBRARY = Path(library)
    names = dict(globals())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(code, names)
        values += [names["value"], recursion(*map(jnp.asarray, (p, p, gram)))]
    results.append([native.instruction_set(), [str(warning.message) for warning in caught]])
expected = recursion(*map(jnp.asarray, (p, p, gram)), native=False)
assert all(np.allclose(value, expected, rtol=1e-13) for value in values)
print(json.dumps(results))
"""
FIRST_USES = {
    "before JAX has a backend": "native.instruction_set(); value = recursion(*map(jnp.asarray, (p, p, gram)))",
    "eager": "value = recursion(*map(jnp.asarray, (p, p, gram)))",
    "jit": "value = jax.jit(recursion)(p, p, gram)",
    "vmap": "value = jax.vmap(lambda gram: recursion(jnp.asarray(p), jnp.asarray(p), gram))(gram)",
    "scan": "value = jax.lax.scan(lambda c, g: (c, recursion(jnp.asarray(p), jnp.asarray(p), g)), 0, gram)[1]",
    "grad": "jax.grad(lambda p: recursion(p, p, jnp.asarray(gram)).sum())(p); value = recursion(p, p, gram)",
    "without jit": "with jax.disable_jit(): value = recursion(*map(jnp.asarray, (p, p, gram)))",
}


def _first_uses(*cases):
    """For every first use and its library: the kernel in use after it, and the warnings. One process for all."""
    run = subprocess.run([sys.executable, "-c", CHILD, json.dumps(cases)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def test_every_first_use_finds_the_kernel():
    for where, result in zip(FIRST_USES, _first_uses(*((code, "") for code in FIRST_USES.values())), strict=True):
        assert result == [library.instruction_set(), []], where


def _build(folder, minor):
    """The library above, for a minor version of XLA's interface (a macro of its header, or a number)."""
    names = [f"lintra_{name}_{bits}" for name in library._HANDLERS for bits in library._BITS.values()]
    doors = [f"XLA_FFI_Error* {name}(XLA_FFI_CallFrame* frame) {{ return handle(frame); }}" for name in names]
    source, built = folder / "library.c", folder / "library.so"
    source.write_text("\n".join([LIBRARY, *doors]))
    headers = Path(jaxlib.__file__).parent / "include"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler is needed, as for the kernel"
    flags = ["-shared", "-fPIC", f"-DMINOR={minor}", f"-I{headers}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(built)], check=True)
    return built


@pytest.mark.parametrize(
    ("minor", "says"), [("XLA_FFI_API_MINOR + 1", "API version"), ("XLA_FFI_API_MINOR", "no such luck")]
)
def test_a_library_that_fails_is_replaced_by_plain_jax_with_one_warning(minor, says, tmp_path):
    path = str(_build(tmp_path, minor))
    first_uses = ("before JAX has a backend", "eager", "jit")
    for kernel, messages in _first_uses(*((FIRST_USES[where], path) for where in first_uses)):
        assert kernel is None
        (message,) = messages
        assert message.startswith("lintra's native kernel cannot be used (")
        assert says in message
        assert "plain JAX is used" in message


def test_a_missing_or_damaged_library_is_replaced_by_plain_jax_with_one_warning(tmp_path):
    missing, damaged = tmp_path / "missing.so", tmp_path / "damaged.so"
    damaged.write_bytes(b"\x7fELF")
    results = _first_uses(*((FIRST_USES["jit"], str(path)) for path in (missing, damaged)))
    for path, (kernel, messages) in zip((missing, damaged), results, strict=True):
        assert kernel is None
        (message,) = messages
        assert path.name in message


def test_every_handler_is_called_when_it_is_registered():
    calls = [equation.params["target_name"] for equation in jax.make_jaxpr(library._call_each)().eqns
             if equation.primitive.name == "ffi_call"]  # fmt: skip
    assert sorted(calls) == sorted(
        f"lintra_{name}_{b}" for name in library._HANDLERS for b in library._BITS.values()
    )
