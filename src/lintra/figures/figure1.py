"""Figure 1: adjusted loss against depth, for uniform noise up to σ_max = 0 … 7."""

from matplotlib.figure import Figure

from lintra.display import Row
from lintra.evaluation.measurement import Results
from lintra.evaluation.paper import UNIFORM
from lintra.evaluation.table1_column import Column
from lintra.figures.panels import AS_PRINTED, HOLLOW, MEDIAN_OF_MEANS, against_depth
from lintra.figures.style import STYLES, legend

CAPTION = (
    "Adjusted loss against the number of layers, for noise levels uniform up to σ_max: "
    f"{MEDIAN_OF_MEANS}. {HOLLOW} {AS_PRINTED}"
)
NEEDS = tuple(map(Column, UNIFORM))


def compute(results: Results) -> list[Row]:
    """Return the columns of Table 1 with uniform noise."""
    return [row for need in NEEDS for row in results[need].to_rows()]


def draw(rows: list[Row]) -> Figure:
    """Eight panels."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    panels = figure.subplots(2, 4)
    for axes, noise in zip(panels.flat, UNIFORM, strict=True):
        against_depth(axes, rows, noise)
        axes.set_title(f"σ$_{{max}}$ = {noise[-2]}")
    for axes in panels[-1]:
        axes.set_xlabel("Number of layers")
    for axes in panels[:, 0]:
        axes.set_ylabel("Adj. eval loss")
    legend(figure, STYLES.values())
    return figure
