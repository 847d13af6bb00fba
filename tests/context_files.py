"""Files of contexts, and the errors that reading them raises."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lintra.regression.files import read

NUMBERS = [1.0, 2.0, 3.0]


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


def rejection(path, **settings):
    """The sentence that answers a file, which it names."""
    with pytest.raises(ValueError, match=r"^[^\n]+$") as rejected:
        contexts(path, **settings)
    assert type(rejected.value) is ValueError
    assert f"'{path}'" in str(rejected.value)
    return str(rejected.value).replace(f"'{path}'", "FILE")
