"""Files of many small regressions: arrays in .npz, or tables of examples in .csv and .parquet."""

import csv
import importlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lintra import checks
from lintra.storage import write_aside
from lintra.tabular import to_csv

KINDS = (".npz", ".csv", ".parquet")


@dataclass(frozen=True)
class Contexts:
    """The contexts of a file.

    Attributes:
        x: Inputs (contexts, n, d), or one array a context.
        y: Labels (contexts, n), or one array a context.
        names: What tells contexts apart, in their order.
        inputs: Names of the inputs.
    """

    x: Any
    y: Any
    names: list[Any]
    inputs: list[str]


def check_kind(name: str, path: Path) -> str:
    """The kind of a file by its ending, or a refusal."""
    return checks.one_of(f"{name} ending", path.suffix.lower(), KINDS)


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
    columns = _read_csv(path) if kind == ".csv" else _read_parquet(path)
    for name in (task, label):
        if name not in columns:
            raise ValueError(f"'{path}' has no column {name!r}; it has {', '.join(columns)}.")
    inputs = [name for name in columns if name not in (task, label)]
    if not inputs:
        raise ValueError(f"'{path}' must have at least one column besides {task!r} and {label!r}.")
    names, first, place = np.unique(columns[task], return_index=True, return_inverse=True)
    x = np.column_stack([_floats(path, name, columns[name]) for name in inputs])
    y = _floats(path, label, columns[label])
    order = np.argsort(place, kind="stable")
    cuts = np.flatnonzero(np.diff(place[order])) + 1
    in_file = np.argsort(first)
    xs, ys = np.split(x[order], cuts), np.split(y[order], cuts)
    return Contexts([xs[i] for i in in_file], [ys[i] for i in in_file], names[in_file].tolist(), inputs)


def write(path: Path, contexts: Contexts, weights: np.ndarray) -> None:
    """Write weights, a row for every context, aside and renamed."""
    content, kind = io.BytesIO(), check_kind("path", path)
    if kind == ".npz":
        np.savez(content, task=np.asarray(contexts.names), weights=weights)
        write_aside(path, content.getvalue())
        return
    columns = {"task": contexts.names} | {name: weights[:, i] for i, name in enumerate(contexts.inputs)}
    if kind == ".parquet":
        pyarrow, parquet = _pyarrow()
        parquet.write_table(pyarrow.table(columns), content)
        write_aside(path, content.getvalue())
        return
    lists = [np.asarray(column).tolist() for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
    write_aside(path, to_csv(rows).encode())


def _read_arrays(path: Path) -> Contexts:
    with np.load(path, allow_pickle=False) as file:
        missing = {"x", "y"} - set(file)
        if missing:
            raise ValueError(f"'{path}' must hold arrays x and y, got {', '.join(file) or 'none'}.")
        x, y = file["x"], file["y"]
    if x.ndim != 3:
        raise ValueError(f"`x` of '{path}' must have shape (contexts, n, d), got {x.shape}.")
    return Contexts(x, y, list(range(len(x))), [f"x{i + 1}" for i in range(x.shape[2])])


def _read_csv(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        raise ValueError(f"'{path}' must have a line of names and at least one example.")
    uneven = next((number for number, row in enumerate(rows, 1) if len(row) != len(rows[0])), None)
    if uneven is not None:
        raise ValueError(f"Line {uneven} of '{path}' has {len(rows[uneven - 1])} values, not {len(rows[0])}.")
    return {name: np.asarray(column) for name, *column in zip(*rows, strict=True)}


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    table = _pyarrow()[1].read_table(path)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise ValueError(
            "Parquet files need pyarrow: pip install 'lintra[parquet]'. Or use .csv or .npz."
        ) from None


def _floats(path: Path, name: str, column: np.ndarray) -> np.ndarray:
    try:
        return column.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Column {name!r} of '{path}' must hold numbers: {error}.") from None
