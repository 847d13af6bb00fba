from types import SimpleNamespace
from typing import Any

import numpy as np

from lintra.evaluation.layers import seed_names
from lintra.figures import FIGURES
from lintra.figures.figure5 import quantiles_over_seeds


def test_figure_5_measures_every_layer_of_every_seed(results):
    rows = FIGURES["5"].compute(results)
    cells = {(row["method"], row["layers"], row["seed"], row["layer"]) for row in rows}
    expected = {("gd++", d, 0, k) for d in (1, 2) for k in range(1, d + 1)}
    expected |= {(v, d, s, k) for v in ("diag", "full") for d in (1, 3) for s in (0, 1) for k in range(1, d + 1)}
    assert cells == expected | {("bayes", None, None, None)}


def test_seeds_of_gdpp_are_used_where_they_are_in_the_zoo():
    def found(family, *names):
        zoo: Any = SimpleNamespace(cards=dict.fromkeys(names))
        return seed_names(zoo, family, 3)

    one = "gd++-3-uniform(0,5)"
    assert found("gd++", one) == {0: one}
    assert found("gd++", one, f"{one}-seed0", f"{one}-seed4") == {0: f"{one}-seed0", 4: f"{one}-seed4"}
    assert found("diag", "diag-3-uniform(0,5)") == {}
    assert found("gd++") == {}


def test_one_seed_that_explodes_moves_the_end_of_the_bar_only():
    losses = (0.1, 0.2, 0.3, 0.4, np.inf)
    rows = [{"method": "diag", "layer": 1, "loss": loss} for loss in losses]
    layers, middle, low, high = quantiles_over_seeds(rows, "loss", method="diag")
    assert (list(layers), list(middle), list(low), list(high)) == ([1], [0.3], [0.1], [np.inf])
