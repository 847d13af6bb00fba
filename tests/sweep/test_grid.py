import pytest

from lintra.problem.noisy_regression import NoisyRegression
from lintra.sweep import GRIDS, Cell, Store, grid, shard, train_chain
from lintra.training import Fast, ModelSpec, Paper
from lintra.training.version import TRAINING_VERSION


def test_a_cell_of_another_training_version_is_trained_again(tmp_path, monkeypatch):
    cell = Cell(ModelSpec("gd++", 1, NoisyRegression(2, 6, "fixed(1)")))
    store = Store(tmp_path)
    store.prepare()
    assert train_chain((cell,), str(tmp_path)) == []
    assert store.holds(cell)
    monkeypatch.setattr(grid, "TRAINING_VERSION", TRAINING_VERSION + 1)
    assert not store.holds(cell)
    assert train_chain((cell,), str(tmp_path)) == []
    assert len(list(tmp_path.glob("*.safetensors"))) == 2


def test_the_grid_of_table_1_is_all_of_it():
    cells = [cell for cells in GRIDS["table1"]() for cell in cells]
    assert len(set(cells)) == len(cells)
    first = [cell for cell in cells if cell.seed == 0 and cell.spec.num_layers <= 7]
    assert len(first) == 210
    seeds = [
        cell for cell in cells if str(cell.spec.problem.noise) == "uniform(0,5)" and cell.spec.family == "full"
    ]
    assert {(cell.spec.num_layers, cell.seed) for cell in seeds} == {(d, s) for d in range(1, 9) for s in range(5)}


def test_shards_share_out_all_chains():
    chains = GRIDS["table1"]()
    shares = [shard(chains, number, 3) for number in (1, 2, 3)]
    assert sorted(str(cells) for share in shares for cells in share) == sorted(map(str, chains))
    with pytest.raises(ValueError, match=r"`shard` must be from 1/N to N/N, got 4/3"):
        shard(chains, 4, 3)


def test_the_hash_follows_everything_that_the_result_follows_from():
    cells = [
        Cell(ModelSpec("diag", 1, "fixed(1)")),
        Cell(ModelSpec("diag", 2, "fixed(1)")),
        Cell(ModelSpec("diag", 1, "fixed(1)"), seed=1),
        Cell(ModelSpec("diag", 1, "fixed(1)"), recipe=Fast(objective="truth")),
    ]
    assert len({cell.digest for cell in cells}) == len(cells)
    assert cells[0].digest == Cell(ModelSpec("diag", 1, "fixed(1.0)")).digest


def test_the_grid_of_the_papers_recipe_has_every_cell_of_table_1_as_a_chain_of_its_own():
    chains = GRIDS["table1"](noises=("uniform(0,5)", "choice(1,3)"), recipe=Paper())
    cells = [cell for cells in chains for cell in cells]
    assert len(chains) == len(cells) == 21 + 24
    assert all(cell.recipe == Paper() and cell.parents() == {} for cell in cells)
    assert {cell.digest for cell in cells}.isdisjoint(cell.digest for cells in GRIDS["table1"]() for cell in cells)
    shares = [shard(chains, number, 8) for number in range(1, 9)]
    assert sorted(str(cells) for share in shares for cells in share) == sorted(map(str, chains))
    assert Cell(ModelSpec("full", 7, "fixed(1)"), recipe=Paper()).cost > 1000
