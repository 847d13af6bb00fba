"""Figure 5: adjusted loss after each layer of models of every depth, over five seeds."""

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from lintra.display import Row, select
from lintra.evaluation.layers import SEEDED, Layers
from lintra.evaluation.measurement import Results
from lintra.figures.panels import AS_PRINTED, MEDIAN_OF_MEANS
from lintra.figures.style import STYLES, even_log_ticks
from lintra.models.families import PAPER_FAMILIES

CAPTION = (
    "Adjusted loss after each layer of models with 1 to 7 layers trained at uniform(0,5), for each model "
    f"{MEDIAN_OF_MEANS}. Markers: median over seeds; bars: from the smallest to the largest of "
    f"five seeds (of GD++ those that are published, or one). {AS_PRINTED}"
)
DEPTHS = range(1, 8)
LOSSES = Layers((SEEDED,), DEPTHS)
NEEDS = (LOSSES,)
_DASHES = ["-", (0, (5, 1)), (0, (3, 1)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1)), "-"]


def compute(results: Results) -> list[Row]:
    """Return the losses of every seed's models after every layer, and the Bayes floor."""
    return results[LOSSES]


def draw(rows: list[Row]) -> Figure:
    """A panel for every family."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    colours = colours_of_depth(len(DEPTHS))
    for axes, family in zip(panels, PAPER_FAMILIES, strict=True):
        for depth, colour, dashes in zip(DEPTHS, colours, _DASHES, strict=True):
            layers, *losses = quantiles_over_seeds(rows, "median_of_means", method=family, layers=depth)
            middle, low, high = losses
            axes.errorbar(
                layers, middle, [middle - low, high - middle], color=colour, linestyle=dashes, marker="o",
                markersize=3, capsize=2, label=f"{depth} layer{'s' * (depth > 1)}",
            )  # fmt: skip
        axes.set(yscale="log", xlabel="Prediction after K layers", title=STYLES[family].label, xlim=(0, 8))
        axes.axhline(select(rows, "median_of_means", method="bayes")[0][0], **STYLES["bayes"].options())
        even_log_ticks(axes)
    panels[0].set_ylabel("Adjusted eval loss")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def colours_of_depth(num_colours: int) -> list:
    """Return colours from light to dark."""
    return [colormaps["viridis_r"](0.08 + 0.9 * number / max(num_colours - 1, 1)) for number in range(num_colours)]


def over_seeds(rows: list[Row], **where: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return layers, and mean and standard deviation over seeds after each of them."""
    layers, losses = select(rows, "layer", "adjusted_loss", **where)
    numbers = np.unique(layers)
    by_layer = [losses[layers == layer] for layer in numbers]
    with np.errstate(over="ignore", invalid="ignore"):  # models diverge far from the noise they were trained on
        means, spreads = ([summary(values) for values in by_layer] for summary in (np.mean, np.std))
    return numbers, np.asarray(means), np.asarray(spreads)


def quantiles_over_seeds(rows: list[Row], column: str, **where: object) -> tuple[np.ndarray, ...]:
    """Return layers, and the median, the smallest and the largest value over seeds after each of them."""
    layers, values = select(rows, "layer", column, **where)
    numbers = np.unique(layers)
    by_layer = [values[layers == layer] for layer in numbers]
    summaries = ([summary(of_seeds) for of_seeds in by_layer] for summary in (np.median, np.min, np.max))
    return numbers, *map(np.asarray, summaries)
