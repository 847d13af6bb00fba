"""Figure 1: adjusted loss against depth, for uniform noise up to σ_max = 0 … 7."""

from matplotlib.figure import Figure

from lintra.evaluation.measurement import Measurements, Piece, Row
from lintra.evaluation.paper import UNIFORM
from lintra.figures.panels import against_depth
from lintra.figures.style import LOOKS, legend

CAPTION = "Adjusted loss against the number of layers, for noise levels uniform up to σ_max."
NOISES = UNIFORM


def pieces() -> list[Piece]:
    """What is measured for it."""
    return [("column", noise) for noise in NOISES]


def compute(measurements: Measurements) -> list[Row]:
    """The columns of Table 1 with uniform noise."""
    return [row for noise in NOISES for row in measurements.depth_rows(noise)]


def draw(rows: list[Row]) -> Figure:
    """Eight panels."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    panels = figure.subplots(2, 4)
    for axes, noise in zip(panels.flat, NOISES, strict=True):
        against_depth(axes, rows, noise)
        axes.set_title(f"σ$_{{max}}$ = {noise[-2]}")
    for axes in panels[-1]:
        axes.set_xlabel("Number of layers")
    for axes in panels[:, 0]:
        axes.set_ylabel("Adj. eval loss")
    legend(figure, LOOKS.values())
    return figure
