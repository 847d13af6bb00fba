from lintra.figures import FIGURES


def test_figure_8_measures_what_is_there_beside_the_baselines(results):
    rows = FIGURES["8"].compute(results)
    cells = {(row["noise"], row["method"], row["heads"], row["layers"]) for row in rows}
    lines = {(n, m, None, None) for n in FIGURES["8"].NOISES for m in ("const-ridge", "ada-ridge", "tuned-ridge")}
    assert lines <= cells
    assert ("choice(1,3)", "full", 1, 4) in cells
    assert ("uniform(0,5)", "diag", 1, 2) in cells
