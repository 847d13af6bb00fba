from lintra.figures import FIGURES


def test_figure_5_measures_every_layer_of_every_seed(results):
    rows = FIGURES["5"].compute(results)
    cells = {(row["method"], row["layers"], row["seed"], row["layer"]) for row in rows}
    expected = {("gd++", d, 0, k) for d in (1, 2) for k in range(1, d + 1)}
    expected |= {(v, d, s, k) for v in ("diag", "full") for d in (1, 3) for s in (0, 1) for k in range(1, d + 1)}
    assert cells == expected | {("bayes", None, None, None)}
