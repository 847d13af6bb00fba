"""The kernel's first use: wherever it is, and whatever is wrong with the library, the numbers come."""

import json
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import jax
import jaxlib
import pytest
from packaging.requirements import Requirement

from lintra.kernel import library as kernel_library

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
        assert result == [kernel_library.instruction_set(), []], where


def _build(folder, minor):
    """The library above, for a minor version of XLA's interface (a macro of its header, or a number)."""
    names = [
        f"lintra_{name}_{bits}" for name in kernel_library._HANDLERS for bits in kernel_library._BITS.values()
    ]
    doors = [f"XLA_FFI_Error* {name}(XLA_FFI_CallFrame* frame) {{ return handle(frame); }}" for name in names]
    source, library = folder / "library.c", folder / "library.so"
    source.write_text("\n".join([LIBRARY, *doors]))
    headers = Path(jaxlib.__file__).parent / "include"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler is needed, as for the kernel"
    flags = ["-shared", "-fPIC", f"-DMINOR={minor}", f"-I{headers}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    return library


@pytest.mark.parametrize(
    ("minor", "says"), [("XLA_FFI_API_MINOR + 1", "API version"), ("XLA_FFI_API_MINOR", "no such luck")]
)
def test_a_library_that_fails_is_replaced_by_plain_jax_with_one_warning(minor, says, tmp_path):
    library = str(_build(tmp_path, minor))
    places = ("before JAX has a backend", "eager", "jit")
    for kernel, messages in _first_uses(*((FIRST_USES[where], library) for where in places)):
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
    calls = [equation.params["target_name"] for equation in jax.make_jaxpr(kernel_library._call_each)().eqns
             if equation.primitive.name == "ffi_call"]  # fmt: skip
    assert sorted(calls) == sorted(
        f"lintra_{name}_{b}" for name in kernel_library._HANDLERS for b in kernel_library._BITS.values()
    )


def _named(name, entries, **environment):
    """Of these requirements the one for a package that applies, here or in another environment."""
    found = [Requirement(entry) for entry in entries]
    (one,) = [r for r in found if r.name == name and (r.marker is None or r.marker.evaluate(environment))]
    return one.specifier


def test_the_build_pins_the_oldest_supported_headers():
    settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    supported = _named("jax", settings["project"]["dependencies"])
    build = settings["build-system"]["requires"]
    for python, oldest in (("3.11", "0.6.0"), ("3.13", "0.6.0"), ("3.14", "0.7.2")):
        assert str(_named("jaxlib", build, python_version=python)) == f"=={oldest}"
        assert supported.contains(oldest)
    assert not supported.contains("0.5.3")
    assert _named("jaxlib", build, python_version="3.15")
    excluded = [s.version for s in _named("jax", requires("equinox")) if s.operator == "!="]
    assert not any(supported.contains(version) for version in excluded)
