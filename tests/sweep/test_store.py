"""Damaged cells of a sweep's store."""

import pytest
from typer.testing import CliRunner

from lintra import zoo
from lintra.cli import app
from lintra.models import GDPlusPlus
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.processes import ProcessExecutor
from lintra.runtime.progress import Progress
from lintra.sweep import GRIDS, Store, chain, run_sweep

CELLS = chain(NoisyRegression(3, 8, "fixed(1)"), 3, families=("gd++",))


class Messages(Progress):
    """Collects messages and updates."""

    def __init__(self):
        self.texts, self.updates = [], []

    def message(self, text):
        self.texts.append(text)

    def update(self, done, **fields):
        self.updates.append((done, fields))


def _damage(store, kind):
    """Damage the second of three cells."""
    path = store.path(CELLS[1])
    content = path.read_bytes()
    damaged = {
        "empty": b"",
        "cut": content[:-8],
        "altered": content[:-1] + bytes([content[-1] ^ 1]),
        "another model": store.path(CELLS[0]).read_bytes(),
    }
    path.write_bytes(damaged[kind])


@pytest.fixture
def store(tmp_path, getkey):
    kept = Store(tmp_path)
    kept.prepare()
    for cell in CELLS:
        model = GDPlusPlus.random(cell.spec.num_layers, dim=3, num_examples=8, key=getkey())
        kept.write(cell, model, {"validation_loss": 1.0}, seconds=1.0)
    return kept


@pytest.mark.parametrize("kind", ["empty", "cut", "altered", "another model"])
def test_a_damaged_cell_counts_as_missing_and_is_reported_once(store, kind):
    messages = Messages()
    watched = Store(store.folder, messages)
    assert watched.missing(CELLS) == []
    _damage(store, kind)
    assert watched.missing(CELLS) == [CELLS[1]]
    assert watched.missing(CELLS) == [CELLS[1]]
    (text,) = messages.texts
    assert text.startswith("The file of gd++-2-fixed(1)-n8-d3 cannot be used and counts as missing: ")
    assert not watched.holds(CELLS[1])
    assert store.path(CELLS[1]).with_suffix(".damaged").exists()


def test_a_sweep_trains_a_damaged_cell_again_and_reports_it(store):
    _damage(store, "empty")
    messages = Messages()
    with ProcessExecutor(1) as executor:
        failures = run_sweep([CELLS], Store(store.folder, messages), executor, progress=messages)
    assert failures == []
    (text,) = messages.texts
    assert "counts as missing" in text
    assert messages.updates[-1] == (3, {"running": 0, "failed": 0, "seconds_left": 0.0})
    assert store.load(CELLS[1]).num_layers == 2
    assert store.seconds()[CELLS[1].digest] != 1.0


def test_a_zoo_is_published_without_the_damaged_cell(store, monkeypatch, tmp_path):
    _damage(store, "cut")
    monkeypatch.setitem(GRIDS, "tiny", lambda: [CELLS])
    counts = ["--sequences", "10", "--gate-sequences", "10", "--unsafe"]
    arguments = ["publish", "zoo.safetensors", "--grid", "tiny", "--store", str(store.folder), *counts]
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    names = set(zoo.Zoo(tmp_path / "zoo.safetensors").cards)
    assert names == {"gd++-1-fixed(1)-n8-d3", "gd++-3-fixed(1)-n8-d3"}
    assert "gd++-2-fixed(1)-n8-d3 cannot be used and counts as missing" in result.stderr
    assert "gd++-2-fixed(1)-n8-d3 is not in the store." in result.stderr
