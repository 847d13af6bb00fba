import datetime
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from context_files import NUMBERS, contexts, csv, parquet, rejection
from lintra.regression.files import check_out, write

X, Y = np.ones((2, 3, 1)), np.ones((2, 3))


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
def test_arrays_that_cannot_be_read_are_rejected(tmp_path, spoil, sentence):
    spoil(tmp_path / "examples.npz")
    assert rejection(tmp_path / "examples.npz").startswith(sentence)


def test_missing_parquet_is_reported_by_its_name(tmp_path):
    path = tmp_path / "missing.parquet"
    with pytest.raises(FileNotFoundError) as missing:
        contexts(path)
    assert (missing.value.filename, missing.value.strerror) == (str(path), "No such file or directory")


def test_an_array_that_declares_more_than_its_file_has_is_rejected_before_memory_is_requested(tmp_path):
    path = tmp_path / "examples.npz"
    np.savez(path, y=Y)
    with zipfile.ZipFile(path, "a") as archive, archive.open("x.npy", "w") as member:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6, 10)}
        np.lib.format.write_array_header_1_0(member, header)
    assert "array 'x.npy' declares 80000000000000 bytes and has 128." in rejection(path)
