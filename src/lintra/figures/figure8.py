"""Figure 8, not the paper's: how close to the Bayes floor do linear transformers come with depth?"""

from dataclasses import replace

from matplotlib.figure import Figure

from lintra.display import select
from lintra.evaluation.measurement import Measurements, Piece, Row
from lintra.evaluation.paper import table1
from lintra.figures.style import LOOKS, Look, legend
from lintra.models.spec import Task

CAPTION = (
    "Loss above the Bayes floor, ½E‖w − w_B‖², against the number of layers. Crosses: what the paper prints for "
    "Full, less the floor."
)
NOISES = ("uniform(0,5)", "choice(1,3)")
DEPTHS = range(1, 13)
MODELS = {
    ("diag", 1): LOOKS["diag"],
    ("diag", 2): replace(LOOKS["diag"], label="Diag, 2 heads", colour="#8C3A00", marker="D", line=(0, (4, 1))),
    ("full", 1): LOOKS["full"],
}
LINES = ("const-ridge", "ada-ridge", "tuned-ridge")
_PAPER = Look("Full, in the paper", LOOKS["full"].colour, "x", "")


def pieces() -> list[Piece]:
    """The excess of models and baselines over the floor."""
    places = [(variant, depth, heads) for variant, heads in MODELS for depth in DEPTHS]
    tasks = {noise: tuple(Task(v, depth, noise, heads) for v, depth, heads in places) for noise in NOISES}
    return [("excess", noise, tasks[noise], LINES) for noise in NOISES]


def compute(measurements: Measurements) -> list[Row]:
    """The excess at every prior."""
    return [row for _, *place in pieces() for row in measurements.excess(*place)]


def draw(rows: list[Row]) -> Figure:
    """A panel for every prior."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, len(NOISES))
    for axes, noise in zip(panels, NOISES, strict=True):
        for method in LINES:
            axes.axhline(select(rows, "excess", noise=noise, method=method)[0][0], **LOOKS[method].options())
        for (variant, heads), look in MODELS.items():
            axes.plot(
                *select(rows, "layers", "excess", noise=noise, method=variant, heads=heads), **look.options()
            )
        floor = select(rows, "bayes_floor", noise=noise)[0][0]
        printed = {layers: table1()["full", layers, noise].value - floor for layers in range(1, 8)}
        axes.plot(list(printed), list(printed.values()), **_PAPER.options())
        axes.set(yscale="log", xlabel="Number of layers", title=noise, xticks=DEPTHS)
    panels[0].set_ylabel("Loss above the Bayes floor")
    legend(figure, [*MODELS.values(), _PAPER, *(LOOKS[method] for method in LINES)])
    return figure
