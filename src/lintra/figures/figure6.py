"""Figure 6: the unadjusted loss, in which methods can hardly be told apart."""

from matplotlib.figure import Figure

from lintra.evaluation.measurement import Measurements, Piece, Row
from lintra.figures import panels
from lintra.figures.style import LOOKS

CAPTION = (
    "Unadjusted loss at each noise level, 7 layers, trained at uniform(0,5): methods can hardly be told apart."
)
NOISE = "uniform(0,5)"


def pieces() -> list[Piece]:
    """The profile of all depths, which Figure 3 shows too."""
    return [("profile", NOISE, range(2, 8))]


def compute(measurements: Measurements) -> list[Row]:
    """The profile of 7 layers."""
    return [row for row in measurements.profile(NOISE, range(2, 8)) if row["layers"] in (None, 7)]


def draw(rows: list[Row]) -> Figure:
    """One panel."""
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    panels.profile(axes, rows, NOISE, 7, "unadjusted_loss")
    axes.set(xlabel="Noise level σ", ylabel="Unadjusted eval loss", ylim=(0, None))
    axes.legend(handles=axes.get_lines()[-len(LOOKS) :])
    return figure
