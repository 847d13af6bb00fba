"""Figure 8, not the paper's: how close to the Bayes floor do linear transformers come with depth?"""

from dataclasses import replace

from matplotlib.figure import Figure

from lintra.baselines import TABLE1_BASELINES
from lintra.display import Row, select
from lintra.evaluation.bayes_excess import Excess
from lintra.evaluation.measurement import Results
from lintra.evaluation.paper import printed_table1
from lintra.figures.panels import AS_PRINTED, MEDIAN_OF_MEANS
from lintra.figures.style import STYLES, Style, even_log_ticks, legend
from lintra.models.spec import ModelSpec

CAPTION = (
    "Loss above the Bayes floor, ½E‖w − w_B‖², against the number of layers: "
    f"{MEDIAN_OF_MEANS}. Crosses: what the paper prints for Full, less the floor. {AS_PRINTED}"
)
NOISES = ("uniform(0,5)", "choice(1,3)")
DEPTHS = range(1, 13)
MODELS = {
    ("diag", 1): STYLES["diag"],
    ("diag", 2): replace(STYLES["diag"], label="Diag, 2 heads", colour="#8C3A00", marker="D", line=(0, (4, 1))),
    ("full", 1): STYLES["full"],
}
LINES = tuple(name for name in TABLE1_BASELINES if name != "bayes")
_PAPER = Style("Full, in the paper", "#000000", "x", "", marker_size=8, marker_width=2)
NEEDS = tuple(
    Excess(noise, tuple(ModelSpec(family, depth, noise, heads) for family, heads in MODELS for depth in DEPTHS))
    for noise in NOISES
)


def compute(results: Results) -> list[Row]:
    """Return the loss of models and baselines above the Bayes floor, at every prior."""
    return [row for need in NEEDS for row in results[need]]


def draw(rows: list[Row]) -> Figure:
    """A panel for every prior."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, len(NOISES))
    for axes, noise in zip(panels, NOISES, strict=True):
        for method in LINES:
            axes.axhline(
                select(rows, "median_of_means", noise=noise, method=method)[0][0], **STYLES[method].options()
            )
        for (family, heads), style in MODELS.items():
            where = {"noise": noise, "method": family, "heads": heads}
            axes.plot(*select(rows, "layers", "median_of_means", **where), **style.options())
        floor = select(rows, "bayes_floor", noise=noise)[0][0]
        printed = {layers: printed_table1()["full", layers, noise].value - floor for layers in range(1, 8)}
        axes.plot(list(printed), list(printed.values()), **_PAPER.options(), zorder=5)
        axes.set(yscale="log", xlabel="Number of layers", title=noise, xticks=DEPTHS)
        even_log_ticks(axes)
    panels[0].set_ylabel("Loss above the Bayes floor")
    legend(figure, [*MODELS.values(), _PAPER, *(STYLES[method] for method in LINES)])
    return figure
