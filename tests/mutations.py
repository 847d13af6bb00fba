"""Mutation tests: apply small defects one at a time, and check that the tests find them.

`mutations.toml` has the list. Every mutation is applied to a temporary copy of the tree, so the working tree is
never changed. A mutation is *killed* if one of its tests fails, and it *survived* if all of them pass.

    python tests/mutations.py                     # all mutations
    python tests/mutations.py choice edge         # two of them
    python tests/mutations.py --baseline          # check first that the tests pass without a mutation

Ends with code 1 if a result differs from the expected one, the field `killed` of the list.
"""

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("mutations.toml")
_COPIED = ("src", "tests", "native", "explorer", "docs", "examples", "setup.py", "pyproject.toml", "README.md")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "node_modules", "dist", "*.egg-info")
_SECONDS = 600  # wall time for one mutation's tests, on a machine that may be busy
_BUILD_SECONDS = 900
# On x86 `setup.py` compiles the kernel once per instruction set. Here, as on other machines, one is enough.
_BUILD = """
import platform, runpy, sys
platform.machine = lambda: "any"
sys.argv = ["setup.py", "-q", "build_ext", "--inplace"]
runpy.run_path("setup.py", run_name="__main__")
"""

KILLED, SURVIVED, ERROR = "killed", "SURVIVED", "error"


class MutationError(Exception):
    """A mutation that cannot be tried."""


@dataclass(frozen=True)
class Mutation:
    """One defect.

    Attributes:
        id: Its name, which stays when files move.
        description: What is broken.
        file: The file, relative to the root of the tree.
        old: Text that occurs exactly once in the file.
        new: What it is replaced by.
        tests: Arguments of pytest: the tests that should fail.
        killed: The expected result.
        rebuild: Whether the native kernel must be compiled.
    """

    id: str
    description: str
    file: str
    old: str
    new: str
    tests: list[str]
    killed: bool
    rebuild: bool = False

    def apply(self, tree: Path) -> None:
        """Change the file in a copy of the tree."""
        path = tree / self.file
        if not path.is_file():
            raise MutationError(f"there is no file '{self.file}'")
        content = path.read_text(encoding="utf-8")
        if (count := content.count(self.old)) != 1:
            raise MutationError(f"`old` occurs {count} times in '{self.file}', and must occur once")
        path.write_text(content.replace(self.old, self.new), encoding="utf-8")


def read_list(path: Path = LIST) -> dict[str, Mutation]:
    """All mutations by their ids."""
    mutations = [Mutation(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]]
    by_id = {mutation.id: mutation for mutation in mutations}
    if len(by_id) < len(mutations):
        raise ValueError(f"'{path}' has an id more than once.")
    return by_id


def copy_tree(tree: Path) -> None:
    """Copy what the tests need, the compiled kernel included."""
    tree.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=_LEFT_OUT)
        else:
            shutil.copy2(source, tree / name)


def run(tree: Path, arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Run Python in a copy of the tree, and return the exit code (`None` after a timeout) and the output."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LINTRA_CACHE": str(tree / "cache"),  # what a mutation computes must not be found by others
        # Compiled programs are found by their content, so all copies can share them.
        "JAX_COMPILATION_CACHE_DIR": str(tree.parent / "programs"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if process.poll() is None:  # a timeout or an interrupt: end the tests with all their children
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def build_kernel(tree: Path) -> None:
    """Compile the kernel of a copy of the tree."""
    for library in (tree / "src").rglob("_native*.so"):
        library.unlink()  # `setup.py` succeeds without a kernel, so an old one would hide that
    code, output = run(tree, ["-c", _BUILD], _BUILD_SECONDS)
    if code != 0 or not list((tree / "src").rglob("_native*.so")):
        raise MutationError(f"the kernel could not be compiled: {_last_line(output)}")


def run_tests(tree: Path, tests: Sequence[str]) -> tuple[str, str]:
    """Run tests until the first failure, and return the result with a note."""
    code, output = run(tree, ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests], _SECONDS)
    if code is None:
        return ERROR, f"no result after {_SECONDS} s"
    if code == 1 or code < 0:  # a test failed, or the process crashed
        return KILLED, ""
    if code == 0:
        return SURVIVED, ""
    return ERROR, f"pytest ended with code {code}: {_last_line(output)}"


def attempt(mutation: Mutation, tree: Path) -> tuple[str, str]:
    """Apply a mutation to a fresh copy of the tree and run its tests."""
    try:
        copy_tree(tree)
        mutation.apply(tree)
        if mutation.rebuild:
            build_kernel(tree)
        return run_tests(tree, mutation.tests)
    except MutationError as error:
        return ERROR, str(error)


def check_baseline(mutations: Sequence[Mutation], tree: Path) -> bool:
    """Run the tests of all these mutations without any of them, and return whether they pass."""
    copy_tree(tree)
    if any(mutation.rebuild for mutation in mutations):
        build_kernel(tree)
    tests = list(dict.fromkeys(test for mutation in mutations for test in mutation.tests))
    code, output = run(tree, ["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], 4 * _SECONDS)
    if code != 0:
        print(output)
    return code == 0


def cpu_seconds() -> float:
    """CPU time of all processes that were started from here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def try_all(mutations: Sequence[Mutation], folder: Path) -> list[str]:
    """Try mutations one after the other, print the results, and return the ids of unexpected ones."""
    unexpected = []
    for mutation in mutations:
        before, tree = cpu_seconds(), folder / mutation.id
        result, note = attempt(mutation, tree)
        shutil.rmtree(tree, ignore_errors=True)
        expected = KILLED if mutation.killed else SURVIVED
        if result != expected:
            unexpected.append(mutation.id)
            note = f"(expected: {expected}) {note}"
        used = f"{cpu_seconds() - before:5.1f} s"
        print(f"{result:8s} {used}  {mutation.id:12s} {mutation.description} {note}".rstrip(), flush=True)
    return unexpected


def main() -> int:
    parser = argparse.ArgumentParser(description="Apply small defects and check that the tests find them.")
    parser.add_argument("ids", nargs="*", help="which mutations; default: all")
    parser.add_argument(
        "--baseline", action="store_true", help="check first that the same tests pass without a mutation"
    )
    arguments = parser.parse_args()
    by_id = read_list()
    unknown = [name for name in arguments.ids if name not in by_id]
    if unknown:
        parser.error(f"there is no mutation {', '.join(unknown)}; there are {', '.join(by_id)}")
    mutations = [by_id[name] for name in arguments.ids or by_id]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that tests are ended and copies are removed
    with tempfile.TemporaryDirectory(prefix="lintra-mutations-") as folder:
        if arguments.baseline:
            if not check_baseline(mutations, Path(folder) / "baseline"):
                print("The tests fail without a mutation, so nothing can be said about mutations.")
                return 1
            print(f"baseline {cpu_seconds():5.1f} s  all tests pass without a mutation", flush=True)
        unexpected = try_all(mutations, Path(folder))
    print(f"{len(mutations)} mutations, {cpu_seconds():.0f} s of CPU time, {len(unexpected)} unexpected results")
    return 1 if unexpected else 0


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")


if __name__ == "__main__":
    sys.exit(main())
