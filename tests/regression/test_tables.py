"""Files of contexts: what is read is what was written, and what cannot be read is rejected in one sentence."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from context_files import NUMBERS, contexts, csv, parquet, rejection


def test_an_index_that_pandas_left_is_no_input(tmp_path):
    frame = pd.DataFrame({"task": ["b", "a", "b", "a"], "x": 1.0, "y": 2.0}, index=[3, 1, 2, 5])
    frame.to_parquet(tmp_path / "examples.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "examples.parquet").names
    assert contexts(tmp_path / "examples.parquet").inputs == ["x"]


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.timestamp("us")),
        pa.array([1, 2, 3], pa.date32()),
        pa.array([1, 2, 3], pa.duration("s")),
        pa.array(["1", "2", "3"]),
        pa.array([{"a": 1}] * 3),
        pa.array(["1", "2", "3"]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_only_columns_of_numbers_are_taken_for_numbers(tmp_path, column, values):
    sentence = rejection(parquet(tmp_path, **{column: values}))
    assert sentence.startswith(f"Column '{column}' of FILE must hold numbers, got type {values.type};")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.int8()),
        pa.array([2**62 + 1, 1, 1]),
        pa.array(NUMBERS, pa.float16()),
        pa.array([True, False, True]),
        pa.array([decimal.Decimal("1.5")] * 3),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_of_every_kind_are_read_without_an_index(tmp_path, values):
    found = contexts(parquet(tmp_path, x=values, __index_level_0__=[0, 1, 2]))
    first, second, third = map(float, values.to_pylist())
    assert [x.tolist() for x in found.x] == [[[first], [third]], [[second]]]


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        (pa.array([2**53, None, 2**53 + 1]), "an empty cell"),
        (pa.array(["a", None, "b"]), "an empty cell"),
        (pa.array(["a", None, "b"]).dictionary_encode(), "an empty cell"),
        (pa.array([1.0, np.nan, 2.0]), "nan"),
        (pa.nulls(3), "an empty cell"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_an_example_without_a_task_is_rejected(tmp_path, values, cell):
    row = 0 if pa.types.is_null(values.type) else 1
    wanted = f"Column 'task' of FILE must name a task for every example, got {cell} in row {row} (counted from 0)."
    assert rejection(parquet(tmp_path, task=values)) == wanted


@pytest.mark.parametrize(
    "values", [pa.array([{"a": 1}] * 3), pa.array([1, 2, 3], pa.timestamp("us", "Asia/Tokyo"))]
)
def test_a_column_that_cannot_name_tasks_is_rejected(tmp_path, values):
    sentence = rejection(parquet(tmp_path, task=values))
    assert sentence.startswith(f"Column 'task' of FILE must hold names or numbers, got type {values.type};")


def test_two_columns_of_one_name_are_rejected(tmp_path):
    wanted = "FILE has more than one column 'x'; give each a name of its own."
    assert rejection(csv(tmp_path, "task,x,x,y\na,1,2,3\n")) == wanted
    arrays = [pa.array(["a"]), pa.array([1.0]), pa.array([2.0]), pa.array([3.0])]
    pq.write_table(pa.table(arrays, names=["task", "x", "x", "y"]), tmp_path / "examples.parquet")
    assert rejection(tmp_path / "examples.parquet") == wanted


def test_a_column_without_a_name_is_rejected(tmp_path):
    pd.DataFrame({"task": ["a"], "x": [1.0], "y": [2.0]}).to_csv(tmp_path / "examples.csv")
    assert rejection(tmp_path / "examples.csv").startswith("Column 1 of FILE has no name;")


def test_parquet_that_cannot_be_read_is_rejected(tmp_path):
    path = parquet(tmp_path)
    intact = path.read_bytes()
    for content in (intact[:-9], b"", b"task,x,y\n", intact[:-60] + b"\xff" * 52 + intact[-8:]):
        path.write_bytes(content)
        assert rejection(path).startswith("FILE is not an intact Parquet file: ")


def test_a_table_without_examples_is_rejected(tmp_path):
    wanted = "FILE must have at least one example under the names of its columns."
    empty = pa.array([], pa.float64())
    assert rejection(parquet(tmp_path, task=pa.array([], pa.string()), x=empty, y=empty)) == wanted
    for content in ("", "\n\n", "task,x,y\n", "task,x,y\n\n,,\n"):
        assert rejection(csv(tmp_path, content)) == wanted


def test_marks_and_blank_lines_of_other_programs_are_ignored(tmp_path):
    found = contexts(
        csv(tmp_path, b"\xef\xbb\xbf" + "task,x,y\r\né,1,2\r\n\r\nb,3,4\r\n,,\r\n  \r\n\r\n".encode())
    )
    assert (found.task, found.names.tolist(), found.inputs) == ("task", ["é", "b"], ["x"])
    assert [x.tolist() for x in found.x] == [[[1.0]], [[3.0]]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("é,x,y\n".encode("latin-1"), "FILE must be text in UTF-8, got byte 0xe9; save it as UTF-8."),
        ("task,x,y\n".encode("utf-16"), "FILE must be text in UTF-8, got byte 0xff; save it as UTF-8."),
        ("task,x,y\n\na,1,2\n\na,3\n", "Line 5 of FILE has 2 values under 3 names."),
        ('x,y,task\n1,2,a\n\n1,2,"b\n3,4,c\n', "Line 4 of FILE is not CSV: unexpected end of data."),
        (
            "task,x,y\n\n ,1,2\n",
            "Column 'task' of FILE must name a task for every example, got an empty cell on line 3.",
        ),
    ],
)
def test_text_that_is_no_table_is_rejected(tmp_path, content, sentence):
    assert rejection(csv(tmp_path, content)) == sentence


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("cell", ["", " ", "nan", "inf", "1e999", "one"])
def test_cells_of_text_that_are_no_numbers_are_named(tmp_path, column, cell):
    last = f"{cell},1" if column == "x" else f"1,{cell}"
    shown = repr(cell) if cell.strip() else "an empty cell"
    assert rejection(csv(tmp_path, f'task,x,y\n"b\nc",1,2\n\na,{last}\n')) == (
        f"Column '{column}' of FILE must hold finite numbers, got {shown} on line 5, task 'a'; "
        "correct that example or leave it out."
    )


@pytest.mark.parametrize(("cell", "shown"), [(None, "an empty cell"), (np.nan, "nan"), (-np.inf, "-inf")])
def test_numbers_of_parquet_that_are_not_finite_are_named(tmp_path, cell, shown):
    assert rejection(parquet(tmp_path, x=pa.array([1.0, cell, cell], from_pandas=False))) == (
        f"Column 'x' of FILE must hold finite numbers, got {shown} in row 1 (counted from 0), task 'a'; "
        "correct that example or leave it out."
    )
