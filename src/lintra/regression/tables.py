"""Tables in files: rows as CSV, and the columns of .csv and .parquet, with words for where every cell stands."""

import csv
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index that has no name


@dataclass(frozen=True)
class AbstractTable(ABC):
    """A table that was read: every column has a name of its own, and there is at least one row.

    Attributes:
        path: Its file.
        columns: The cells of every column, as the file has them.
    """

    path: Path
    columns: dict[str, Any]

    @abstractmethod
    def floats(self, name: str) -> np.ndarray:
        """A column as numbers, NaN where it holds none."""

    @abstractmethod
    def blank(self, name: str) -> np.ndarray:
        """Which rows say nothing in a column."""

    @abstractmethod
    def distinct(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The values of a column as they first appear, and for every row which of them it has."""

    @abstractmethod
    def found(self, name: str, row: int) -> str:
        """What stands in a cell, and where, in words."""


@dataclass(frozen=True)
class _Csv(AbstractTable):
    lines: list[int]

    def floats(self, name: str) -> np.ndarray:
        return np.asarray([_float(cell) for cell in self.columns[name]])

    def blank(self, name: str) -> np.ndarray:
        return np.asarray([not cell.strip() for cell in self.columns[name]])

    def distinct(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(self.columns[name]))}
        return np.asarray(list(numbers), object), np.asarray([numbers[cell] for cell in self.columns[name]])

    def found(self, name: str, row: int) -> str:
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

    def found(self, name: str, row: int) -> str:
        cell = self.columns[name][row].as_py()
        return f"{'an empty cell' if cell is None else repr(cell)} in row {row} (counted from 0)"


def read_csv(path: Path) -> AbstractTable:
    """Read a CSV file in UTF-8, with or without Excel's mark at its beginning; blank lines say nothing."""
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
    """Read a Parquet file, or a folder of them, without an index that pandas left in it."""
    pyarrow, parquet = arrow()
    path.stat()  # tells of a missing file in the system's words
    try:
        dataset = parquet.ParquetDataset(path)
        names = [name for name in dataset.schema.names if not _INDEX.fullmatch(name)]
        _check_names(path, names)
        table = dataset.read()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"'{path}' is not a whole Parquet file: {str(error).splitlines()[0]}") from None
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
    """The rows that are not blank, each with the line where it begins."""
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
    """Refuse columns that cannot be told apart."""
    for place, name in enumerate(names):
        if not name.strip():
            raise ValueError(
                f"Column {place + 1} of '{path}' has no name; name it, or leave it out if it is an index."
            )
        if name in names[:place]:
            raise ValueError(f"'{path}' has more than one column {name!r}; give each a name of its own.")


def _check_rows(path: Path, count: int) -> None:
    if count < 1:
        raise ValueError(f"'{path}' must have at least one example under the names of its columns.")


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _decoded(column: Any) -> Any:
    """A column of categories as the values that they stand for."""
    types = arrow()[0].types
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _is_number(kind: Any) -> bool:
    types = arrow()[0].types
    return any(
        is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    )


def _is_text(kind: Any) -> bool:
    types = arrow()[0].types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_time(kind: Any) -> bool:
    """Whether NumPy has the same dates or times; it has none with a time zone."""
    types = arrow()[0].types
    return types.is_date(kind) or (types.is_timestamp(kind) and kind.tz is None)
