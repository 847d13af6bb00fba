import errno
import importlib
import os

import pytest

from lintra.evaluation import closed_form
from lintra.problem.noisy_regression import NoisyRegression
from lintra.sweep import Cell, Store, chain, store, train_chain
from lintra.training import Paper
from lintra.training.descent.descent import Descent
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


sweep_chain = importlib.import_module("lintra.sweep.chain")  # the name is the function's in `lintra.sweep`
PAPER = Paper(num_starts=2, num_steps=3000, batch_size=16)  # three units of work


@pytest.fixture
def _with_checkpoints(monkeypatch):
    """Checkpoints for every cell, after every unit of work."""
    monkeypatch.setattr(sweep_chain, "_LONG", 0.0)
    monkeypatch.setattr(sweep_chain, "_INTERVAL", 0.0)


def papers_cells() -> tuple[Cell, ...]:
    return chain(NoisyRegression(2, 6, "choice(1,3)"), 1, families=("gd++", "diag", "full"), recipe=PAPER)


@pytest.mark.usefixtures("_with_checkpoints")
def test_a_cell_of_the_papers_recipe_resumes_from_its_checkpoint_and_ends_in_the_same_bytes(tmp_path, monkeypatch):
    cell = papers_cells()[1]
    stores = {name: Store(tmp_path / name) for name in ("whole", "resumed")}
    for empty_store in stores.values():
        empty_store.prepare()
    assert train_chain((cell,), str(tmp_path / "whole")) == []
    real, calls = Descent.advance, []

    def advance(self, state, data):
        calls.append(int(state.step))
        if len(calls) == 3:
            raise RuntimeError("the worker was interrupted")
        return real(self, state, data)

    monkeypatch.setattr(Descent, "advance", advance)
    (failure,) = train_chain((cell,), str(tmp_path / "resumed"))
    assert "interrupted" in failure.reason
    assert train_chain((cell,), str(tmp_path / "resumed")) == []
    assert calls == [0, 1000, 2000, 2000]  # the last unit of work alone was done again
    assert stores["resumed"].path(cell).read_bytes() == stores["whole"].path(cell).read_bytes()
    assert stores["resumed"].card(cell)["settings"]["recipe"] == "paper"
    assert not list((tmp_path / "resumed" / ".runs").iterdir())


def test_a_column_of_the_papers_recipe_at_one_hundredth_of_its_steps_learns(tmp_path):
    store = Store(tmp_path)
    store.prepare()
    cells = papers_cells()
    assert train_chain(cells, str(tmp_path)) == []
    losses = {cell.spec.family: store.card(cell)["selection"]["validation_loss"] for cell in cells}
    zero = closed_form.adjusted(cells[0].spec.problem.dim / 2, cells[0].spec.problem)
    best = closed_form.adjusted(closed_form.one_layer_loss(cells[0].spec.problem), cells[0].spec.problem)
    assert all(best - 0.02 < loss < (best + zero) / 2 for loss in losses.values()), (losses, best, zero)
