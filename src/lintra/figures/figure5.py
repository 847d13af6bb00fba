"""Figure 5: adjusted loss after each layer of models of every depth, over five seeds."""

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from lintra.display import select
from lintra.evaluation.measurement import SEEDED, Measurements, Piece, Row
from lintra.figures.style import LOOKS
from lintra.models.families import VARIANTS

CAPTION = (
    "Adjusted loss after each layer of models with 1 to 7 layers trained at uniform(0,5); error bars are standard "
    "deviations over five seeds (of GD++, which is fitted without sequences, one seed is published)."
)
DEPTHS = range(1, 8)
_DASHES = ["-", (0, (5, 1)), (0, (3, 1)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1)), "-"]


def pieces() -> list[Piece]:
    """Losses of every seed's models after every layer, and the Bayes floor."""
    return [("layer_by_layer", (SEEDED,), DEPTHS)]


def compute(measurements: Measurements) -> list[Row]:
    """These losses."""
    return measurements.layer_by_layer((SEEDED,), DEPTHS)


def draw(rows: list[Row]) -> Figure:
    """A panel for every family."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    colours = colours_of_depth(len(DEPTHS))
    for axes, variant in zip(panels, VARIANTS, strict=True):
        for depth, colour, dashes in zip(DEPTHS, colours, _DASHES, strict=True):
            after, means, spreads = over_seeds(rows, method=variant, layers=depth)
            axes.errorbar(
                after, means, spreads, color=colour, linestyle=dashes, marker="o", markersize=3, capsize=2,
                label=f"{depth} layer{'s' * (depth > 1)}",
            )  # fmt: skip
        axes.set(yscale="log", xlabel="Prediction after K layers", title=LOOKS[variant].label, xlim=(0, 8))
        axes.axhline(select(rows, "adjusted_loss", method="bayes")[0][0], **LOOKS["bayes"].options())
    panels[0].set_ylabel("Adjusted eval loss")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def colours_of_depth(count: int) -> list:
    """From light to dark."""
    return [colormaps["viridis_r"](0.08 + 0.9 * place / max(count - 1, 1)) for place in range(count)]


def over_seeds(rows: list[Row], **where: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Layers, and mean and standard deviation over seeds after each of them."""
    kept = [row for row in rows if all(row[name] == value for name, value in where.items())]
    after = sorted({row["after"] for row in kept})
    losses = [[row["adjusted_loss"] for row in kept if row["after"] == layer] for layer in after]
    with np.errstate(over="ignore", invalid="ignore"):  # far from what they were trained on, models explode
        means, spreads = ([measure(values) for values in losses] for measure in (np.mean, np.std))
    return np.asarray(after), np.asarray(means), np.asarray(spreads)
