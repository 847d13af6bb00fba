"""Snapshot of what lintra computes at fixed seeds, to compare before and after a change of the code.

    python tests/snapshot.py check    # compute everything again and print every difference
    python tests/snapshot.py write    # store everything anew in tests/snapshot.json

Names of entries as further arguments restrict either to these. `--quick` leaves out the report, which takes more
than half of the time. A difference is printed with its path (entry, row, key), the value before and the value
after; the exit code is then 1.

Run `check` after every step that moves or renames code. Run `write` only when a change of numbers or words is
meant, and list the change in the changelog. pytest does not collect this file.

The package is used through its command line and a few public names, so that its modules can move. Numbers are
compared to a relative 1e-9, all else exactly. That holds on the machine that wrote the data. On another one use
for instance `--rtol 1e-4`. Digests of computed weights are then not compared; texts with rounded numbers are.

Not covered: timings, versions, pictures, `bench`, `specialists`, `explore --measure`, sweeps on a cluster, and the
three slowest claims of `theory`.
"""

import argparse
import difflib
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from snapshot_entries import COMPUTED, ENTRIES

DATA = Path(__file__).with_suffix(".json")
RTOL = 1e-9
_ATOL = 1e-15  # losses of 1e-30 are rounding
_DIGITS = 12  # of the numbers that are stored
_DROPPED = {"seconds", "version", "versions", "checksum"}  # keys whose values differ from run to run


def stored(value: Any) -> Any:
    """Return a value as it is stored: without what varies, numbers rounded, tuples as lists."""
    if isinstance(value, dict):
        return {key: stored(part) for key, part in value.items() if key not in _DROPPED}
    if isinstance(value, list | tuple):
        return [stored(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)
    return value


def differences(before: Any, after: Any, rtol: float, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, value before and value after, for everything that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            if key == COMPUTED and rtol > RTOL:
                continue
            if key in before and key in after:
                yield from differences(before[key], after[key], rtol, f"{path} / {key}")
            else:
                yield f"{path} / {key}", before.get(key, "absent"), after.get(key, "absent")
        if list(before) != list(after) and set(before) == set(after):
            yield f"{path} (order of keys)", list(before), list(after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _differences_of_lists(before, after, rtol, path)
    elif _is_number(before) and _is_number(after):
        if not math.isclose(before, after, rel_tol=rtol, abs_tol=_ATOL):
            yield path, before, after
    elif before != after:
        yield path, before, after


def _differences_of_lists(before: list, after: list, rtol: float, path: str) -> Iterator[tuple[str, Any, Any]]:
    if all(isinstance(line, str) for line in before + after):
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for kind, start, end, other_start, other_end in matcher.get_opcodes():
            if kind != "equal":
                yield f"{path} / {start}", before[start:end], after[other_start:other_end]
        return
    if len(before) != len(after):
        yield f"{path} (length)", len(before), len(after)
    for number, (one, other) in enumerate(zip(before, after, strict=False)):
        yield from differences(one, other, rtol, f"{path} / {number}")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def compute(names: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Compute entries, each in a folder of its own, and return them and the errors of those that fail."""
    import lintra

    print(f"lintra is {Path(lintra.__file__).parent}", flush=True)
    found, failed, home = {}, {}, Path.cwd()
    for name in names:
        started = _cpu_seconds()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                found[name] = json.loads(json.dumps(stored(ENTRIES[name]())))
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
            finally:
                os.chdir(home)
        print(f"{name}: {_cpu_seconds() - started:.0f} s of CPU time", flush=True)
    return found, failed


def _cpu_seconds() -> float:
    """CPU time of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def write(names: list[str]) -> int:
    """Store entries; others that are stored are kept."""
    found, failed = compute(names)
    for name, sentence in failed.items():
        print(f"{name} is not written. {sentence}")
    kept = (json.loads(DATA.read_text()) if DATA.exists() else {}) | found
    DATA.write_text(_format({name: kept[name] for name in ENTRIES if name in kept}) + "\n")
    return 1 if failed else 0


def _format(value: Any, depth: int = 0) -> str:
    """Format JSON with one line for each short value, so that changes of the data can be read."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) < 110 or not isinstance(value, dict | list):
        return text
    if isinstance(value, dict):
        lines = [
            f"{json.dumps(key, ensure_ascii=False)}: {_format(part, depth + 1)}" for key, part in value.items()
        ]
    else:
        lines = [_format(part, depth + 1) for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n" + ",\n".join(" " * (depth + 1) + line for line in lines) + "\n" + " " * depth + closing


def check(names: list[str], rtol: float) -> int:
    """Compare entries with those that are stored, and print what differs."""
    before = json.loads(DATA.read_text())
    found, failed = compute(names)
    count = len(failed)
    for name, sentence in failed.items():
        print(f"{name} fails. {sentence}")
    for name, after in found.items():
        for path, old, new in differences(before.get(name), after, rtol, name):
            count += 1
            print(f"{path}\n  before: {_short(old)}\n  after:  {_short(new)}")
    print(f"{count} differences in {len(names)} entries.")
    return 1 if count else 0


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 600 else f"{text[:600]}... ({len(text)} characters)"


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("check", "write"))
    parser.add_argument("entry", nargs="*", help=f"Entries: {', '.join(ENTRIES)}. Default: all.")
    parser.add_argument("--quick", action="store_true", help="Leave out the report.")
    parser.add_argument("--rtol", type=float, default=RTOL, help="Relative tolerance of numbers. Default: 1e-9.")
    given = parser.parse_args()
    unknown = set(given.entry) - set(ENTRIES)
    if unknown:
        parser.error(f"`entry` must be among {', '.join(ENTRIES)}, got {', '.join(sorted(unknown))}.")
    root = os.environ.get("LINTRA_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ["JAX_ENABLE_X64"] = "1"  # entries import JAX before lintra
    # The cache of compiled programs that commands turn on, from the first program on: JAX looks once.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(root, "lintra")))
    left_out = {"report"} if given.quick else set()
    names = [name for name in ENTRIES if name in (given.entry or ENTRIES) and name not in left_out]
    os.environ |= {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}  # tables are printed for a terminal's width
    return write(names) if given.action == "write" else check(names, given.rtol)


if __name__ == "__main__":
    sys.exit(main())
