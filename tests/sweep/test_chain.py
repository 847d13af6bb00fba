import errno
import os

import pytest

from lintra.problem.noisy_regression import NoisyRegression
from lintra.sweep import Store, chain, store, train_chain
from lintra.zoo import model_file


def test_what_is_stored_is_not_trained_again_and_what_was_cut_is_rejected(tmp_path):
    cells = chain(NoisyRegression(3, 8, "fixed(1)"), 2, families=("gd++",))
    store = Store(tmp_path)
    store.prepare()
    assert train_chain(cells, str(tmp_path)) == []
    before = {cell: store.path(cell).stat().st_mtime_ns for cell in cells}
    assert train_chain(cells, str(tmp_path)) == []
    assert before == {cell: store.path(cell).stat().st_mtime_ns for cell in cells}
    assert store.seconds().keys() == {cell.digest for cell in cells}
    assert store.card(cells[0])["settings"]["min_mass"] == 1e-8
    store.path(cells[0]).write_bytes(store.path(cells[0]).read_bytes()[:-8])
    with pytest.raises(ValueError, match="not an intact safetensors file"):
        store.load(cells[0])
    content = store.path(cells[1]).read_bytes()
    assert train_chain(cells, str(tmp_path)) == []
    assert store.holds(cells[0])
    assert store.path(cells[1]).read_bytes() == content
    with (tmp_path / "journal.jsonl").open("a") as journal:
        journal.write('{"cell": "gd++-')
    assert store.seconds().keys() == {cell.digest for cell in cells}


def test_a_store_that_cannot_be_written_to_is_reported_and_cells_are_named(tmp_path):
    cells = chain(NoisyRegression(3, 8, "fixed(1)"), 2, families=("gd++",))
    (tmp_path / "store").write_text("not a folder")
    failures = train_chain(cells, str(tmp_path / "store"))
    assert [failure.cell for failure in failures] == list(cells)
    assert "the store cannot be used" in failures[0].reason


def test_a_disk_that_turns_read_only_in_the_middle_and_a_second_start_that_completes(tmp_path, monkeypatch):
    cells = chain(NoisyRegression(3, 8, "fixed(1)"), 2, families=("gd++",))
    Store(tmp_path).prepare()

    real = model_file.save

    def save(model, path, **more):
        if model.num_layers == 2:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        real(model, path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(store, "save", save)
        failures = train_chain(cells, str(tmp_path))
    assert [failure.cell for failure in failures] == [cells[1]]
    assert "the store cannot be used: [Errno 30] Read-only file system" in failures[0].reason
    assert train_chain(cells, str(tmp_path)) == []
    assert Store(tmp_path).missing(cells) == []
