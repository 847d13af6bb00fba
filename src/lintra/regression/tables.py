"""Columns of tables in .csv and .parquet files, with a description of each cell for messages."""

import csv
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_INDEX = re.compile(r"__index_level_\d+__")  # the name that pandas gives to an index without one


@dataclass(frozen=True)
class AbstractTable(ABC):
    """A table with at least one row, whose columns have different names.

    Attributes:
        path: Its file.
        columns: The cells of each column, as in the file.
    """

    path: Path
    columns: dict[str, Any]

    @abstractmethod
    def floats(self, name: str) -> np.ndarray:
        """Return a column as numbers, with NaN where a cell is not a number."""

    @abstractmethod
    def blank(self, name: str) -> np.ndarray:
        """Return which cells of a column are empty."""

    @abstractmethod
    def distinct(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of a column in their order of appearance, and the position of each row's value."""

    @abstractmethod
    def describe_cell(self, name: str, row: int) -> str:
        """Return the content of a cell and its position in the file, for a message."""


@dataclass(frozen=True)
class _Csv(AbstractTable):
    lines: list[int]

    def floats(self, name: str) -> np.ndarray:
        return np.asarray([_float(cell) for cell in self.columns[name]])

    def blank(self, name: str) -> np.ndarray:
        return np.asarray([not cell.strip() for cell in self.columns[name]])

    def distinct(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        positions = {value: position for position, value in enumerate(dict.fromkeys(self.columns[name]))}
        return np.asarray(list(positions), object), np.asarray([positions[cell] for cell in self.columns[name]])

    def describe_cell(self, name: str, row: int) -> str:
        cell = self.columns[name][row]
        return f"{repr(cell) if cell.strip() else 'an empty cell'} on line {self.lines[row]}"


class _Parquet(AbstractTable):
    def floats(self, name: str) -> np.ndarray:
        column = self.columns[name]
        if not _is_number(column.type):
            raise ValueError(
                f"Column {name!r} of '{self.path}' must hold numbers, got type {column.type}; "
                "turn it into numbers or leave it out."
            )
        return column.cast("float64", safe=False).to_numpy()

    def blank(self, name: str) -> np.ndarray:
        return _decoded(self.columns[name]).is_null(nan_is_null=True).to_numpy()

    def distinct(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        column = _decoded(self.columns[name])
        if not (_is_number(column.type) or _is_text(column.type) or _is_time(column.type)):
            raise ValueError(
                f"Column {name!r} of '{self.path}' must hold names or numbers, got type {column.type}; "
                "turn it into text."
            )
        encoded = column.dictionary_encode().combine_chunks()
        return encoded.dictionary.to_numpy(zero_copy_only=False), encoded.indices.to_numpy()

    def describe_cell(self, name: str, row: int) -> str:
        cell = self.columns[name][row].as_py()
        return f"{'an empty cell' if cell is None else repr(cell)} in row {row} (counted from 0)"


def read_csv(path: Path) -> AbstractTable:
    """Read a CSV file in UTF-8, with or without a byte order mark. Blank lines are ignored.

    Raises:
        ValueError: If the file is not CSV in UTF-8, or has no examples.
    """
    lines, rows = [], []
    for line, row in _csv_rows(path):
        if rows and len(row) != len(rows[0]):
            raise ValueError(f"Line {line} of '{path}' has {len(row)} values under {len(rows[0])} names.")
        lines.append(line)
        rows.append(row)
    _check_names(path, rows[0] if rows else [])
    _check_rows(path, len(rows) - 1)
    return _Csv(path, {name: column for name, *column in zip(*rows, strict=True)}, lines[1:])


def read_parquet(path: Path) -> AbstractTable:
    """Read a Parquet file, or a folder of them, without the index of pandas.

    Raises:
        ValueError: If the file is not intact, or has no examples.
        FileNotFoundError: If there is no such file.
        ImportError: If pyarrow is not installed.
    """
    pyarrow, parquet = arrow()
    path.stat()  # raises the system's error if the file is missing
    try:
        dataset = parquet.ParquetDataset(path)
        names = [name for name in dataset.schema.names if not _INDEX.fullmatch(name)]
        _check_names(path, names)
        table = dataset.read()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"'{path}' is not an intact Parquet file: {str(error).splitlines()[0]}") from None
    _check_rows(path, table.num_rows)
    return _Parquet(path, {name: table.column(name) for name in names})


def arrow() -> tuple[Any, Any]:
    """Return the modules that read and write Parquet.

    Raises:
        ImportError: If they are not installed.
    """
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise ImportError(
            "Parquet files need pyarrow: pip install 'lintra[parquet]'. Or use .csv or .npz."
        ) from None


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with its first line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader, line = csv.reader(file, strict=True), 1
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(f"Line {line} of '{path}' is not CSV: {error}.") from None
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise ValueError(f"'{path}' must be text in UTF-8, got byte {byte:#x}; save it as UTF-8.") from None


def _check_names(path: Path, names: list[str]) -> None:
    """Raise if a column has no name, or two columns have the same."""
    for position, name in enumerate(names):
        if not name.strip():
            raise ValueError(
                f"Column {position + 1} of '{path}' has no name; name it, or leave it out if it is an index."
            )
        if name in names[:position]:
            raise ValueError(f"'{path}' has more than one column {name!r}; give each a name of its own.")


def _check_rows(path: Path, num_rows: int) -> None:
    if num_rows < 1:
        raise ValueError(f"'{path}' must have at least one example under the names of its columns.")


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _decoded(column: Any) -> Any:
    """Return a column of categories as a column of their values."""
    types = arrow()[0].types
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _is_number(column_type: Any) -> bool:
    types = arrow()[0].types
    return any(
        is_type(column_type)
        for is_type in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    )


def _is_text(column_type: Any) -> bool:
    types = arrow()[0].types
    return types.is_string(column_type) or types.is_large_string(column_type) or types.is_string_view(column_type)


def _is_time(column_type: Any) -> bool:
    """Return whether NumPy has the same type of date or time. It has none with a time zone."""
    types = arrow()[0].types
    return types.is_date(column_type) or (types.is_timestamp(column_type) and column_type.tz is None)
