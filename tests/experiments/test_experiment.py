from dataclasses import dataclass
from typing import ClassVar

import pytest

from lintra.experiments import AbstractExperiment, StoredExperiment, run_experiment, stored_rows
from lintra.runtime.progress import SILENT


@dataclass(frozen=True)
class Counting(AbstractExperiment):
    """Two parts, of which the second fails while `broken` is not empty."""

    name: ClassVar[str] = "counting"
    size: float = 1.0
    done: ClassVar[list[str]] = []
    broken: ClassVar[list[str]] = []

    def parts(self):
        return ["first", "second"]

    def run(self, part, progress=SILENT):
        if part in self.broken:
            raise RuntimeError("interrupted")
        self.done.append(part)
        return [{"part": part, "value": self.size / 3, "excess": float("inf")}]


@pytest.fixture(autouse=True)
def _not_run_yet():
    Counting.done.clear()
    Counting.broken.clear()


def test_an_interrupted_experiment_resumes_after_its_last_part_and_is_not_run_again(tmp_path):
    path = tmp_path / "counting.json"
    Counting.broken.append("second")
    with pytest.raises(RuntimeError, match="interrupted"):
        run_experiment(Counting(seed=3), path)
    assert list(StoredExperiment.read(path).parts) == ["first"]
    Counting.broken.clear()
    stored = run_experiment(Counting(seed=3), path)
    assert Counting.done == ["first", "second"]
    content = path.read_bytes()
    run_experiment(Counting(seed=3), path)
    assert Counting.done == ["first", "second"]
    assert path.read_bytes() == content
    assert stored.settings["seed"] == 3
    found = StoredExperiment.read(path)
    assert found.rows == [{"part": p, "value": 0.33333333, "excess": None} for p in ("first", "second")]
    assert found.versions.keys() >= {"lintra", "jax", "numpy"}


def test_a_file_of_other_settings_or_of_no_experiment_is_rejected(tmp_path):
    path = tmp_path / "counting.json"
    run_experiment(Counting(), path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"was stored with size = 1\.0, not 2\.0: name another"):
        run_experiment(Counting(size=2.0), path)
    with pytest.raises(ValueError, match=r"was stored with seed = 0, not 1"):
        run_experiment(Counting(seed=1), path)
    assert path.read_bytes() == content
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is no stored experiment"):
        run_experiment(Counting(), path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="is no stored experiment"):
        StoredExperiment.read(path)


def test_an_experiment_that_is_not_stored_says_how_to_run_it():
    with pytest.raises(FileNotFoundError, match="Run it: lintra experiment equation-99"):
        stored_rows("equation-99")
