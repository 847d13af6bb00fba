"""Files of many small regressions: arrays in .npz, or tables of examples in .csv and .parquet."""

import io
import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lintra import display
from lintra.regression import tables
from lintra.regression.tables import AbstractTable
from lintra.runtime.files import write_aside

KINDS = (".npz", ".csv", ".parquet")
INTERCEPT = "intercept"
"""Name of the column of intercepts."""
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Contexts:
    """The contexts of a file.

    Attributes:
        x: Inputs (contexts, n, d), or one array a context.
        y: Labels (contexts, n), or one array a context.
        names: What tells contexts apart, in their order.
        inputs: Names of the inputs.
        task: Name of the column that tells contexts apart.
    """

    x: Any
    y: Any
    names: np.ndarray
    inputs: list[str]
    task: str = "task"


def check_kind(name: str, path: Path) -> str:
    """Return the kind of a file by its ending.

    Raises:
        ValueError: If it is none of `KINDS`.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ValueError(f"`{name}` must end in one of {', '.join(KINDS)}, got '{path}'.")
    return kind


def check_out(out: Path, path: Path) -> None:
    """Check that weights can be written to `out`, and that it is not the file of the contexts.

    Raises:
        ValueError: If it has another ending, or is the file of the contexts.
        ImportError: If it needs a package that is not installed.
    """
    kind = check_kind("out", out)
    if out.exists() and out.samefile(path):
        raise ValueError(f"`out` must be another file than the contexts, got '{out}' for both.")
    if kind == ".parquet":
        tables.arrow()


def read(path: Path, *, task: str, label: str) -> Contexts:
    """Read contexts.

    Arguments:
        path: The file.
        task: Column of a table that tells contexts apart.
        label: Column of a table that holds labels; all others are inputs.
    """
    kind = check_kind("path", path)
    if kind == ".npz":
        return _read_arrays(path)
    if task == label:
        raise ValueError(f"`task` and `label` must be two columns, got {task!r} for both.")
    table = tables.read_csv(path) if kind == ".csv" else tables.read_parquet(path)
    inputs = _inputs(table, task, label)
    names, places = _tasks(table, task)
    x = np.column_stack([_numbers(table, name, names, places) for name in inputs])
    y = _numbers(table, label, names, places)
    order = np.argsort(places, kind="stable")
    cuts = np.flatnonzero(np.diff(places[order])) + 1
    return Contexts(np.split(x[order], cuts), np.split(y[order], cuts), names, inputs, task)


def check_intercept(contexts: Contexts) -> None:
    """Check that a table of weights has room for a column of intercepts.

    Raises:
        ValueError: If an input or the column that tells contexts apart has that name.
    """
    if INTERCEPT in (*contexts.inputs, contexts.task):
        raise ValueError(
            f"`fit_intercept` adds a column {INTERCEPT!r} to the weights, but there is a column of that name; "
            "rename it, or turn `fit_intercept` off."
        )


def write(path: Path, contexts: Contexts, weights: np.ndarray) -> None:
    """Write weights, a row for every context, aside and renamed.

    Args:
        path: The file.
        contexts: The contexts, for their names.
        weights: Weights, shape (contexts, d), or (contexts, d+1) with the intercept in the last column.
    """
    content, kind, names = io.BytesIO(), check_kind("path", path), contexts.names
    plain = names if names.dtype.kind in "biuf" else names.astype(str)
    inputs = [*contexts.inputs, INTERCEPT][: weights.shape[1]]
    columns = {name: weights[:, i] for i, name in enumerate(inputs)}
    if kind == ".npz":
        np.savez(content, task=plain, weights=weights)
    elif kind == ".parquet":
        pyarrow, parquet = tables.arrow()
        parquet.write_table(pyarrow.table({contexts.task: names} | columns), content)
    else:
        lists = {name: column.tolist() for name, column in ({contexts.task: plain} | columns).items()}
        rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        content.write(display.to_csv(rows).encode())
    write_aside(path, content.getvalue())


def _inputs(table: AbstractTable, task: str, label: str) -> list[str]:
    for name in (task, label):
        if name not in table.columns:
            raise ValueError(
                f"'{table.path}' has no column {name!r}; it has {', '.join(table.columns) or 'none'}."
            )
    inputs = [name for name in table.columns if name not in (task, label)]
    if not inputs:
        raise ValueError(f"'{table.path}' must have at least one column besides {task!r} and {label!r}.")
    return inputs


def _tasks(table: AbstractTable, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The tasks as they first appear, and for every row which of them it belongs to."""
    blank = np.flatnonzero(table.blank(name))
    if blank.size:
        found = table.found(name, int(blank[0]))
        raise ValueError(f"Column {name!r} of '{table.path}' must name a task for every example, got {found}.")
    return table.distinct(name)


def _numbers(table: AbstractTable, name: str, tasks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A column of finite numbers, or a refusal that names the task."""
    values = table.floats(name)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(bad[0])
        raise ValueError(
            f"Column {name!r} of '{table.path}' must hold finite numbers, got {table.found(name, row)}, "
            f"task '{tasks[places[row]]}'; correct that example or leave it out."
        )
    return values


def _read_arrays(path: Path) -> Contexts:
    arrays = _load(path)
    for name in ("x", "y"):
        if name not in arrays:
            raise ValueError(f"'{path}' must hold arrays x and y, but has no {name}.")
    x, y = arrays["x"], arrays["y"]
    if x.ndim != 3 or y.shape != x.shape[:2] or not x.size:
        raise ValueError(
            f"'{path}' must hold x of shape (contexts, n, d) and y of shape (contexts, n), with at least one "
            f"example of one input, got {x.shape} and {y.shape}."
        )
    return Contexts(x, y, np.arange(len(x)), [f"x{i + 1}" for i in range(x.shape[2])])


def _load(path: Path) -> dict[str, np.ndarray]:
    """The arrays x and y of a file, as far as it has them."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"'{path}' is not a whole .npz file; write it by numpy.savez(path, x=x, y=y).")
        file.seek(0)
        try:
            arrays = np.load(file, allow_pickle=False)
            _check_sizes(arrays.zip)
            return {name: np.asarray(arrays[name]) for name in ("x", "y") if name in arrays}
        except _BROKEN as error:
            raise ValueError(f"'{path}' is not a whole .npz file of numbers: {error}") from None


def _check_sizes(archive: zipfile.ZipFile) -> None:
    """Check that no array declares more bytes than the file has, before memory is requested."""
    for info in archive.infolist():
        with archive.open(info) as member:
            if np.lib.format.read_magic(member) == (1, 0):
                shape, _, dtype = np.lib.format.read_array_header_1_0(member)
            else:
                shape, _, dtype = np.lib.format.read_array_header_2_0(member)
        declared = math.prod(shape) * dtype.itemsize
        if declared > info.file_size:
            raise ValueError(f"array '{info.filename}' declares {declared} bytes and has {info.file_size}.")
