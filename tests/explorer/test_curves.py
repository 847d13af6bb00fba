from lintra import zoo
from lintra.explorer.curves import measure, read_curves, write_curves
from untrained_zoo import few_levels


def test_measured_curves_are_kept_beside_the_zoo(tmp_path):
    small = tmp_path / "mine.safetensors"
    name = "diag-1-fixed"
    zoo.write(small, {name: (zoo.load("diag-1-uniform(0,0)"), {"noise": "uniform(0,0)"})})
    with few_levels():
        curves = measure(zoo.Zoo(small), num_sequences=64)
    write_curves(small, curves)
    assert (tmp_path / "mine.curves.json").exists()
    assert read_curves(small) == curves
    losses = curves["uniform(0,0)"]["models"][name]["loss"]
    assert len(losses) == len(curves["uniform(0,0)"]["levels"]) == 5
    assert all(loss > 1 for loss in losses)  # one layer is far from the oracle
