"""Files of contexts: what is read is what was written, and what cannot be read is refused in one sentence."""

import datetime
import decimal
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lintra import solve
from lintra.cli import app
from lintra.regression.files import check_out, read, write

NUMBERS = [1.0, 2.0, 3.0]
X, Y = np.ones((2, 3, 1)), np.ones((2, 3))


def parquet(path, **columns):
    """A table with a column `task`, an input `x` and labels `y`, unless another is given."""
    plain = {"task": ["b", "a", "b"], "x": NUMBERS, "y": NUMBERS}
    pq.write_table(pa.table(plain | columns), path / "examples.parquet")
    return path / "examples.parquet"


def csv(path, content):
    (path / "examples.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return path / "examples.csv"


def contexts(path, task="task", label="y"):
    return read(path, task=task, label=label)


def refusal(path, **settings):
    """The sentence that answers a file, which it names."""
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        contexts(path, **settings)
    assert type(refused.value) is ValueError
    assert f"'{path}'" in str(refused.value)
    return str(refused.value).replace(f"'{path}'", "FILE")


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
    sentence = refusal(parquet(tmp_path, **{column: values}))
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
def test_an_example_without_a_task_is_refused(tmp_path, values, cell):
    row = 0 if pa.types.is_null(values.type) else 1
    wanted = f"Column 'task' of FILE must name a task for every example, got {cell} in row {row} (counted from 0)."
    assert refusal(parquet(tmp_path, task=values)) == wanted


@pytest.mark.parametrize(
    "values", [pa.array([{"a": 1}] * 3), pa.array([1, 2, 3], pa.timestamp("us", "Asia/Tokyo"))]
)
def test_a_column_that_cannot_name_tasks_is_refused(tmp_path, values):
    sentence = refusal(parquet(tmp_path, task=values))
    assert sentence.startswith(f"Column 'task' of FILE must hold names or numbers, got type {values.type};")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([2**53 + 1, 2**53, 2**53 + 1]), [str(2**53 + 1), str(2**53)]),
        (pa.array([2**64 - 1, 1, 2**64 - 1], pa.uint64()), [str(2**64 - 1), "1"]),
        (pa.array([datetime.date(2024, 2, 1), datetime.date(2024, 1, 1)] * 2)[:3], ["2024-02-01", "2024-01-01"]),
        (
            pa.array([10**6, 0, 10**6], pa.timestamp("us")),
            ["1970-01-01T00:00:01.000000", "1970-01-01T00:00:00.000000"],
        ),
        (pa.array(["é", "a", "é"]), ["é", "a"]),
        (pa.array([True, False, True]), ["True", "False"]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_tasks_are_written_as_they_were_read(tmp_path, values, text):
    found = contexts(parquet(tmp_path, group=values, task=NUMBERS), task="group")
    for ending in ("parquet", "csv", "npz"):
        write(tmp_path / f"weights.{ending}", found, np.ones((2, 2)))
    written = pq.read_table(tmp_path / "weights.parquet").column("group")
    assert written.type == values.type
    assert written.to_pylist() == values.to_pylist()[:2]
    assert pl.read_csv(tmp_path / "weights.csv", infer_schema=False)["group"].to_list() == text
    assert np.load(tmp_path / "weights.npz")["task"].astype(str).tolist() == text


def test_categories_are_tasks_in_the_order_of_the_file(tmp_path):
    values = pd.Categorical(["b", "a", "b"], categories=["a", "b", "unused"])
    pd.DataFrame({"task": values, "x": NUMBERS, "y": NUMBERS}, index=[2, 0, 1]).to_parquet(tmp_path / "e.parquet")
    found = contexts(tmp_path / "e.parquet")
    assert found.names.tolist() == ["b", "a"]
    assert [x.tolist() for x in found.x] == [[[1.0], [3.0]], [[2.0]]]
    assert [y.tolist() for y in found.y] == [[1.0, 3.0], [2.0]]


def test_two_columns_of_one_name_are_refused(tmp_path):
    wanted = "FILE has more than one column 'x'; give each a name of its own."
    assert refusal(csv(tmp_path, "task,x,x,y\na,1,2,3\n")) == wanted
    arrays = [pa.array(["a"]), pa.array([1.0]), pa.array([2.0]), pa.array([3.0])]
    pq.write_table(pa.table(arrays, names=["task", "x", "x", "y"]), tmp_path / "examples.parquet")
    assert refusal(tmp_path / "examples.parquet") == wanted


def test_a_column_without_a_name_is_refused(tmp_path):
    pd.DataFrame({"task": ["a"], "x": [1.0], "y": [2.0]}).to_csv(tmp_path / "examples.csv")
    assert refusal(tmp_path / "examples.csv").startswith("Column 1 of FILE has no name;")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_input_may_be_called_task(tmp_path, ending):
    frame = pl.DataFrame({"group": ["g", "h"], "task": [1.0, 2.0], "y": [3.0, 4.0]})
    frame.write_csv(tmp_path / "e.csv") if ending == "csv" else frame.write_parquet(tmp_path / "e.parquet")
    write(tmp_path / f"w.{ending}", contexts(tmp_path / f"e.{ending}", task="group"), np.asarray([[5.0], [6.0]]))
    out = pl.read_csv(tmp_path / "w.csv") if ending == "csv" else pl.read_parquet(tmp_path / "w.parquet")
    assert out.to_dict(as_series=False) == {"group": ["g", "h"], "task": [5.0, 6.0]}


def test_task_and_label_are_two_columns(tmp_path):
    with pytest.raises(ValueError, match="`task` and `label` must be two columns, got 'y' for both"):
        contexts(csv(tmp_path, "y,x\n1,2\n"), task="y")


def test_weights_do_not_replace_the_examples(tmp_path):
    path = csv(tmp_path, "task,x,y\na,1,2\n")
    (tmp_path / "link.csv").symlink_to(path)
    for out in (path, tmp_path / "link.csv", tmp_path / ".." / tmp_path.name / "examples.csv"):
        with pytest.raises(ValueError, match="`out` must be another file than the contexts"):
            check_out(out, path)
    check_out(tmp_path / "weights.csv", path)


def test_missing_pyarrow_is_found_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="Parquet files need pyarrow"):
        check_out(tmp_path / "weights.parquet", tmp_path / "examples.csv")


def cut(path):
    np.savez(path, x=X, y=Y)
    path.write_bytes(path.read_bytes()[:-40])


def altered(path):
    np.savez(path, x=X, y=Y)
    path.write_bytes(path.read_bytes().replace(X.tobytes(), (2 * X).tobytes()))


def one_array(path):
    with path.open("wb") as file:
        np.save(file, X)


BROKEN = "FILE is not an intact .npz file"
SHAPES = "FILE must hold x of shape (contexts, n, d) and y of shape (contexts, n)"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (cut, BROKEN),
        (altered, BROKEN),
        (one_array, BROKEN),
        (Path.touch, BROKEN),
        (lambda path: path.write_text("task,x,y\n"), BROKEN),
        (lambda path: np.savez(path, x=np.asarray([None]), y=Y), BROKEN),
        (lambda path: np.savez(path, x=X), "FILE must hold arrays x and y, but has no y."),
        (lambda path: np.savez(path, x=X[:0], y=Y[:0]), SHAPES),
        (lambda path: np.savez(path, x=X[:, :0], y=Y[:, :0]), SHAPES),
        (lambda path: np.savez(path, x=X, y=Y[:1]), SHAPES),
    ],
)
def test_arrays_that_cannot_be_read_are_refused(tmp_path, spoil, sentence):
    spoil(tmp_path / "examples.npz")
    assert refusal(tmp_path / "examples.npz").startswith(sentence)


def test_parquet_that_cannot_be_read_is_refused(tmp_path):
    path = parquet(tmp_path)
    intact = path.read_bytes()
    for content in (intact[:-9], b"", b"task,x,y\n", intact[:-60] + b"\xff" * 52 + intact[-8:]):
        path.write_bytes(content)
        assert refusal(path).startswith("FILE is not an intact Parquet file: ")


def test_missing_parquet_is_told_by_its_name(tmp_path):
    path = tmp_path / "missing.parquet"
    with pytest.raises(FileNotFoundError) as missing:
        contexts(path)
    assert (missing.value.filename, missing.value.strerror) == (str(path), "No such file or directory")


def test_a_table_without_examples_is_refused(tmp_path):
    wanted = "FILE must have at least one example under the names of its columns."
    empty = pa.array([], pa.float64())
    assert refusal(parquet(tmp_path, task=pa.array([], pa.string()), x=empty, y=empty)) == wanted
    for content in ("", "\n\n", "task,x,y\n", "task,x,y\n\n,,\n"):
        assert refusal(csv(tmp_path, content)) == wanted


def test_marks_and_blank_lines_of_other_programs_say_nothing(tmp_path):
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
def test_text_that_is_no_table_is_refused(tmp_path, content, sentence):
    assert refusal(csv(tmp_path, content)) == sentence


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("cell", ["", " ", "nan", "inf", "1e999", "one"])
def test_cells_of_text_that_are_no_numbers_are_named(tmp_path, column, cell):
    last = f"{cell},1" if column == "x" else f"1,{cell}"
    shown = repr(cell) if cell.strip() else "an empty cell"
    assert refusal(csv(tmp_path, f'task,x,y\n"b\nc",1,2\n\na,{last}\n')) == (
        f"Column '{column}' of FILE must hold finite numbers, got {shown} on line 5, task 'a'; "
        "correct that example or leave it out."
    )


@pytest.mark.parametrize(("cell", "shown"), [(None, "an empty cell"), (np.nan, "nan"), (-np.inf, "-inf")])
def test_numbers_of_parquet_that_are_not_finite_are_named(tmp_path, cell, shown):
    assert refusal(parquet(tmp_path, x=pa.array([1.0, cell, cell], from_pandas=False))) == (
        f"Column 'x' of FILE must hold finite numbers, got {shown} in row 1 (counted from 0), task 'a'; "
        "correct that example or leave it out."
    )


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet"])
def test_the_command_solves_files(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("lintra.cli.solve.enable_compilation_cache", lambda: None)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 12, 3)), rng.normal(size=(4, 3))
    y = np.einsum("bnd,bd->bn", x, w)
    path, out = tmp_path / f"tasks.{ending}", tmp_path / f"weights.{ending}"
    columns = {"group": np.repeat(["d", "b", "a", "c"], 12), "y": y.ravel()}
    table = pd.DataFrame(columns | {name: x[..., i].ravel() for i, name in enumerate(("x1", "task", "x3"))})
    if ending == "npz":
        np.savez(path, x=x, y=y)
    else:
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    command = ["solve", str(path), "--out", str(out), "--task", "group"]
    for options, standard in (([], True), (["--no-standardise", "--no-fit-intercept"], False)):
        CliRunner().invoke(app, command + options, catch_exceptions=False)
        if ending == "npz":
            found = np.load(out)["weights"]
        else:
            table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
            assert list(table["group"]) == ["d", "b", "a", "c"]
            found = table[["x1", "task", "x3", "intercept"][: len(table.columns) - 1]].to_numpy()
        expected = solve(x, y, standardise=standard, fit_intercept=standard)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_command_standardises_and_centres_and_says_why_the_bayes_predictor_answered(tmp_path, monkeypatch):
    monkeypatch.setattr("lintra.cli.solve.enable_compilation_cache", lambda: None)
    rng, (count, n) = np.random.default_rng(0), (60, 30)
    x, w = 100 + [1e-2, 20.0, 500.0] * rng.normal(size=(count, n, 3)), rng.normal(size=(count, 3))
    y = np.einsum("bnd,bd->bn", (x - 100) / [1e-2, 20.0, 500.0], w) + 3 + rng.normal(size=(count, n))
    np.savez(tmp_path / "tasks.npz", x=x, y=y)
    command = ["solve", str(tmp_path / "tasks.npz"), "--out", str(tmp_path / "weights.npz")]
    assert "not reliable" not in CliRunner().invoke(app, command, catch_exceptions=False).output
    weights = np.load(tmp_path / "weights.npz")["weights"]
    fitted = np.einsum("bnd,bd->bn", x, weights[:, :3]) + weights[:, 3:]
    assert np.mean((y - fitted) ** 2) < 1.1
    x = rng.normal(size=(count, n, 1)) + 0.2 * rng.normal(size=x.shape)
    labels = np.einsum("bnd,bd->bn", x, w) + 1e-3 * rng.normal(size=y.shape)
    np.savez(tmp_path / "tasks.npz", x=10 * x, y=labels)
    told = CliRunner().invoke(app, command, catch_exceptions=False).output
    assert f"On {count} of {count} contexts (the first is number 0) the model is not reliable" in told
    assert "Cause: inputs are strongly correlated (60); remedy: drop inputs" in told
    told = CliRunner().invoke(app, [*command, "--no-standardise"], catch_exceptions=False).output
    assert "remedy: pass `--standardise` or divide them" in told


def test_a_column_of_intercepts_needs_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr("lintra.cli.solve.enable_compilation_cache", lambda: None)
    path = csv(tmp_path, "task,intercept,y\na,1,2\na,3,4\n")
    refused = CliRunner().invoke(app, ["solve", str(path), "--out", str(tmp_path / "w.csv")])
    assert "adds a column 'intercept' to the weights, but there is a column of that name" in str(refused.exception)
    assert not (tmp_path / "w.csv").exists()


def test_an_array_that_declares_more_than_its_file_has_is_refused_before_memory_is_requested(tmp_path):
    path = tmp_path / "examples.npz"
    np.savez(path, y=Y)
    with zipfile.ZipFile(path, "a") as archive, archive.open("x.npy", "w") as member:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6, 10)}
        np.lib.format.write_array_header_1_0(member, header)
    assert "array 'x.npy' declares 80000000000000 bytes and has 128." in refusal(path)


@pytest.mark.parametrize(
    ("content", "out", "sentence"),
    [
        ("task,x1,y\n1,2,3\n1,x,3\n", "w.csv", "Column 'x1' of"),
        ("group,x1,y\n1,2,3\n", "w.csv", "has no column 'task'; it has group, x1, y."),
        ("task,y\n1,2\n", "w.csv", "must have at least one column besides 'task' and 'y'."),
        ("task,x1,y\n1,2,3\n", "w.txt", "`--out` must end in one of .npz, .csv, .parquet, got"),
        ("task,x1,y\n1,2,3\n", "examples.csv", "`--out` must be another file than the contexts"),
    ],
)
def test_the_command_refuses_files_in_a_sentence(tmp_path, complaint, content, out, sentence):
    assert sentence in complaint("solve", csv(tmp_path, content), "--out", tmp_path / out)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"examples.csv": content}


def test_the_command_reads_the_same_in_every_locale(tmp_path):
    path = csv(tmp_path, "task,größe,y\nJosé,1,2\nJosé,2,4\nJosé,4,8\n")
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "lintra", "solve", str(path), "--out", str(tmp_path / "w.csv")]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | ascii_only)
    assert run.returncode == 0, run.stderr
    header, row = (tmp_path / "w.csv").read_text(encoding="utf-8").splitlines()
    assert (header, row.split(",")[0]) == ("task,größe,intercept", "José")
