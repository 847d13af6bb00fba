"""`import lintra`: fast, lazy, and complete."""

import ast
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lintra

_ROOT = Path(__file__).parents[1]


def _run(code):
    """What a fresh process prints; it must end well and say nothing on its error stream."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _cpu_seconds(code):
    """The CPU time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_import_lintra_loads_no_library_and_takes_no_time():
    loaded = "import sys, lintra; print({'jax', 'numpy', 'scipy', 'equinox', 'rich'} & set(sys.modules))"
    assert _run(loaded) == "set()\n"
    assert min(_cpu_seconds("import lintra") for _ in range(2)) < 0.2


def test_the_names_of_the_readme_cost_little_more_than_jax():
    names = "lintra.NoisyRegression, lintra.baseline, lintra.zoo.load, lintra.evaluate"
    assert all(name in (_ROOT / "README.md").read_text() for name in names.split(", "))
    # Side by side, since other work on the machine slows down both; the least times are disturbed least.
    codes, times, ratio = (f"import jax, lintra; {names}", "import jax.numpy"), [], np.inf
    while len(times) < 2 or (ratio >= 1.35 and len(times) < 8):
        times.append([_cpu_seconds(code) for code in codes])
        ours, jax_alone = np.min(times, axis=0)
        ratio = ours / jax_alone
    assert ratio < 1.35


def test_dir_has_the_public_names_alone_before_and_after_they_are_imported():
    code = (
        "import lintra; before = dir(lintra); from lintra import *; print(before == dir(lintra), train.__name__)"
    )
    assert _run(code) == "True train\n"
    names = [name for name in dir(lintra) if not name.startswith("__")]
    assert names == sorted(set(lintra.__all__) - {"__version__"})


def test_each_name_is_what_type_checkers_see():
    tree = ast.parse((_ROOT / "src/lintra/__init__.py").read_text())
    block = next(
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    seen = {"__builtins__": {"__import__": __import__}, "__version__": lintra.__version__}
    exec(ast.unparse(ast.Module(block.body, [])), seen)
    del seen["__builtins__"]
    assert seen == {name: getattr(lintra, name) for name in lintra.__all__}


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'lintra' has no attribute 'evalaute'"):
        lintra.evalaute  # noqa: B018
