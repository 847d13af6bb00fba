"""Figure 7: adjusted loss at each noise level, after each layer of models with 2 to 8 layers."""

import numpy as np
from matplotlib.figure import Figure

from lintra.display import select
from lintra.evaluation.measurement import SEEDED, Measurements, Piece, Row
from lintra.figures.figure5 import colours_of_depth, over_seeds
from lintra.figures.style import LOOKS, shade
from lintra.models.families import VARIANTS

CAPTION = (
    "Adjusted loss at each noise level after each layer of models trained at uniform(0,5) (shaded); bands are "
    "standard deviations over five seeds."
)
DEPTHS = range(2, 9)
LEVELS = {f"fixed({level:g})": float(level) for level in np.linspace(0, 10, 21)}


def pieces() -> list[Piece]:
    """Losses of every seed's models after every layer, and the Bayes floor, at every noise level."""
    return [("layer_by_layer", tuple(LEVELS), DEPTHS)]


def compute(measurements: Measurements) -> list[Row]:
    """Mean and standard deviation over seeds, at every noise level."""
    rows, losses = [], measurements.layer_by_layer(tuple(LEVELS), DEPTHS)
    for noise, level in LEVELS.items():
        measured = [row for row in losses if row["noise"] == noise]
        floor = {"method": "bayes", "layers": None, "after": None, "std": level, "std_over_seeds": None}
        (least,), *_ = select(measured, "adjusted_loss", method="bayes")
        rows.append(floor | {"adjusted_loss": float(least)})
        for variant in VARIANTS:
            for depth in DEPTHS:
                place = {"method": variant, "layers": depth}
                for after, mean, spread in zip(*over_seeds(measured, **place), strict=True):
                    where = {"after": int(after), "std": level}
                    rows.append(place | where | {"adjusted_loss": float(mean), "std_over_seeds": float(spread)})
    return rows


def draw(rows: list[Row]) -> Figure:
    """A row for every depth, a column for every family."""
    figure = Figure(figsize=(9, 13.5), layout="constrained")
    panels = figure.subplots(len(DEPTHS), len(VARIANTS), sharex=True, sharey=True)
    colours = colours_of_depth(max(DEPTHS))
    floor = select(rows, "std", "adjusted_loss", method="bayes")
    for line, depth in zip(panels, DEPTHS, strict=True):
        for axes, variant in zip(line, VARIANTS, strict=True):
            shade(axes, SEEDED)
            for after in range(1, depth + 1):
                place = {"method": variant, "layers": depth, "after": after}
                stds, means, spreads = select(rows, "std", "adjusted_loss", "std_over_seeds", **place)
                axes.plot(stds, means, color=colours[after - 1], label=f"After {after} layer{'s' * (after > 1)}")
                axes.fill_between(
                    stds, means - spreads, means + spreads, color=colours[after - 1], alpha=0.15, lw=0
                )
            axes.plot(*floor, **LOOKS["bayes"].options(marked=False))
            axes.set(ylim=(0, 1.05), xlim=(0, 10))
        line[0].set_ylabel(f"{depth} layers model\nAdj. eval loss")
    for axes, variant in zip(panels[0], VARIANTS, strict=True):
        axes.set_title(LOOKS[variant].label)
    for axes in panels[-1]:
        axes.set_xlabel("Noise level σ")
    figure.legend(*panels[-1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure
