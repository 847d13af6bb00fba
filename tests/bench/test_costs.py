from lintra import bench
from lintra.figures import curves
from lintra.figures.style import save_picture


def test_costs_are_rows_that_can_be_drawn(tmp_path):
    rows = bench.measure_costs({"layers": (1,), "examples": (20,)}, num_repetitions=1)
    assert [sorted(row) for row in rows] == [
        ["axis", "diag_ms", "full_ms", "gd++_ms", "value"],
        ["axis", "sampling_ms", "value"],
    ]
    plots = bench.cost_plots(rows)
    assert [plot.xlabel for plot in plots] == ["layers", "examples n"]
    assert [[curve.label for curve in plot.curves] for plot in plots] == [["GD++", "DIAG", "FULL"], ["SAMPLING"]]
    assert plots[0].curves[2].y == [rows[0]["full_ms"]]
    save_picture(curves.draw(plots, num_columns=2), tmp_path / "costs.svg")
    assert "<svg" in (tmp_path / "costs.svg").read_text()
