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
from lintra.runtime.files import write_atomic

SUFFIXES = (".npz", ".csv", ".parquet")
"""Formats of files."""
INTERCEPT = "intercept"
"""Name of the column of intercepts."""
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Contexts:
    """The contexts of a file.

    Attributes:
        x: Inputs, shape (contexts, n, d), or one array (n, d) for each context.
        y: Labels, shape (contexts, n), or one array (n,) for each context.
        names: Name of each context.
        inputs: Names of the inputs.
        task: Name of the column with the names of contexts.
    """

    x: Any
    y: Any
    names: np.ndarray
    inputs: list[str]
    task: str = "task"


def check_suffix(name: str, path: Path) -> str:
    """Return the suffix of a file, which is its format.

    Args:
        name: Name of the argument, for the message.
        path: The file.

    Raises:
        ValueError: If it is none of `SUFFIXES`.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"`{name}` must end in one of {', '.join(SUFFIXES)}, got '{path}'.")
    return suffix


def check_out(out: Path, path: Path) -> None:
    """Check that weights can be written to `out`, and that it is not the file of the contexts.

    Args:
        out: The file for the weights.
        path: The file of the contexts.

    Raises:
        ValueError: If `out` has another suffix than those of `SUFFIXES`, or is the file of the contexts.
        ImportError: If `out` needs a package that is not installed.
    """
    suffix = check_suffix("out", out)
    if out.exists() and out.samefile(path):
        raise ValueError(f"`out` must be another file than the contexts, got '{out}' for both.")
    if suffix == ".parquet":
        tables.arrow()


def read(path: Path, *, task: str, label: str) -> Contexts:
    """Read contexts.

    Args:
        path: The file: `.npz` with arrays x and y, or a table with one example in each row, `.csv` or `.parquet`.
        task: Column of a table with the name of the context. Examples of a context need not be adjacent.
        label: Column of a table with labels. All other columns are inputs.

    Returns:
        The contexts, in the order in which they first appear.

    Raises:
        ValueError: If the file is not intact, a column is missing, or a value is not a finite number.
        FileNotFoundError: If there is no such file.
        ImportError: If the file needs a package that is not installed.
    """
    suffix = check_suffix("path", path)
    if suffix == ".npz":
        return _read_arrays(path)
    if task == label:
        raise ValueError(f"`task` and `label` must be two columns, got {task!r} for both.")
    table = tables.read_csv(path) if suffix == ".csv" else tables.read_parquet(path)
    inputs = _input_names(table, task, label)
    names, indices = _tasks(table, task)
    x = np.column_stack([_finite_column(table, name, names, indices) for name in inputs])
    y = _finite_column(table, label, names, indices)
    # Examples of one context become adjacent, in the order of the file.
    order = np.argsort(indices, kind="stable")
    cuts = np.flatnonzero(np.diff(indices[order])) + 1
    return Contexts(np.split(x[order], cuts), np.split(y[order], cuts), names, inputs, task)


def check_intercept(contexts: Contexts) -> None:
    """Check that the name of the column of intercepts is free.

    Args:
        contexts: The contexts whose weights will be written.

    Raises:
        ValueError: If an input or the column with the names of contexts has that name.
    """
    if INTERCEPT in (*contexts.inputs, contexts.task):
        raise ValueError(
            f"`fit_intercept` adds a column {INTERCEPT!r} to the weights, but there is a column of that name; "
            "rename it, or turn `fit_intercept` off."
        )


def write(path: Path, contexts: Contexts, weights: np.ndarray) -> None:
    """Write weights atomically, one row for each context.

    Args:
        path: The file: `.npz`, `.csv` or `.parquet`.
        contexts: The contexts, for their names.
        weights: Weights, shape (contexts, d), or (contexts, d+1) with the intercept in the last column.

    Raises:
        ValueError: If the file has another suffix.
        ImportError: If the file needs a package that is not installed.
    """
    content, suffix, names = io.BytesIO(), check_suffix("path", path), contexts.names
    plain = names if names.dtype.kind in "biuf" else names.astype(str)
    inputs = [*contexts.inputs, INTERCEPT][: weights.shape[1]]
    columns = {name: weights[:, i] for i, name in enumerate(inputs)}
    if suffix == ".npz":
        np.savez(content, task=plain, weights=weights)
    elif suffix == ".parquet":
        pyarrow, parquet = tables.arrow()
        parquet.write_table(pyarrow.table({contexts.task: names} | columns), content)
    else:
        lists = {name: column.tolist() for name, column in ({contexts.task: plain} | columns).items()}
        rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        content.write(display.to_csv(rows).encode())
    write_atomic(path, content.getvalue())


def _input_names(table: AbstractTable, task: str, label: str) -> list[str]:
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
    """Return the names of the tasks in their order of appearance, and the position of each row's task."""
    blank = np.flatnonzero(table.blank(name))
    if blank.size:
        cell = table.describe_cell(name, int(blank[0]))
        raise ValueError(f"Column {name!r} of '{table.path}' must name a task for every example, got {cell}.")
    return table.distinct(name)


def _finite_column(table: AbstractTable, name: str, tasks: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return a column of finite numbers, or raise with the name of the task."""
    values = table.floats(name)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(bad[0])
        raise ValueError(
            f"Column {name!r} of '{table.path}' must hold finite numbers, got {table.describe_cell(name, row)}, "
            f"task '{tasks[indices[row]]}'; correct that example or leave it out."
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
    """Return those of the arrays x and y that a file has."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"'{path}' is not an intact .npz file; write it by numpy.savez(path, x=x, y=y).")
        file.seek(0)
        try:
            arrays = np.load(file, allow_pickle=False)
            _check_sizes(arrays.zip)
            return {name: np.asarray(arrays[name]) for name in ("x", "y") if name in arrays}
        except _BROKEN as error:
            raise ValueError(f"'{path}' is not an intact .npz file of numbers: {error}") from None


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
