"""Run the Python of the README with the installed package, and check that it uses the kernel.

python -I readme.py README.md
"""

import re
import sys
import tempfile
import warnings
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path

import lintra
from lintra.kernel import library

readme = Path(sys.argv[1]).read_text(encoding="utf-8")
examples = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
assert examples, f"{sys.argv[1]} has no fenced Python"
assert Path(lintra.__file__).is_relative_to(sys.prefix), f"{lintra.__file__} is not the installed package"
warnings.filterwarnings("error", message="lintra's native kernel")

with tempfile.TemporaryDirectory() as folder, chdir(folder):
    for example in examples:
        exec(compile(example, sys.argv[1], "exec"), {"__name__": "__main__"})

kernel = library.instruction_set()
assert kernel is not None, "the native kernel is not in use"
versions = ", ".join(f"{name} {version(name)}" for name in ("lintra", "jax", "jaxlib", "equinox", "numpy"))
print(f"Python {sys.version.split()[0]}, {versions}; kernel {kernel}; {len(examples)} examples ran")
