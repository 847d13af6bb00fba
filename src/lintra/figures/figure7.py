"""Figure 7: adjusted loss at each noise level, after each layer of models with 2 to 8 layers."""

import numpy as np
from matplotlib.figure import Figure

from lintra.display import Row, select
from lintra.evaluation.layers import SEEDED, Layers
from lintra.evaluation.measurement import Results
from lintra.figures.figure5 import colours_of_depth, over_seeds
from lintra.figures.style import STYLES, shade
from lintra.models.families import PAPER_FAMILIES

CAPTION = (
    "Adjusted loss at each noise level after each layer of models trained at uniform(0,5) (shaded); bands are "
    "standard deviations over five seeds."
)
DEPTHS = range(2, 9)
NOISE_STDS = {f"fixed({noise_std:g})": float(noise_std) for noise_std in np.linspace(0, 10, 21)}
LOSSES = Layers(tuple(NOISE_STDS), DEPTHS)
NEEDS = (LOSSES,)


def compute(results: Results) -> list[Row]:
    """Return mean and standard deviation over seeds after every layer, and the floor, at every noise level."""
    rows = []
    for noise, noise_std in NOISE_STDS.items():
        measured = [row for row in results[LOSSES] if row["noise"] == noise]
        floor = {"method": "bayes", "layers": None, "layer": None, "noise_std": noise_std, "std_over_seeds": None}
        (least,), *_ = select(measured, "adjusted_loss", method="bayes")
        rows.append(floor | {"adjusted_loss": float(least)})
        for family in PAPER_FAMILIES:
            for depth in DEPTHS:
                model = {"method": family, "layers": depth}
                for layer, mean, spread in zip(*over_seeds(measured, **model), strict=True):
                    where = {"layer": int(layer), "noise_std": noise_std}
                    rows.append(model | where | {"adjusted_loss": float(mean), "std_over_seeds": float(spread)})
    return rows


def draw(rows: list[Row]) -> Figure:
    """A row for every depth, a column for every family."""
    figure = Figure(figsize=(9, 13.5), layout="constrained")
    panels = figure.subplots(len(DEPTHS), len(PAPER_FAMILIES), sharex=True, sharey=True)
    colours = colours_of_depth(max(DEPTHS))
    floor = select(rows, "noise_std", "adjusted_loss", method="bayes")
    for line, depth in zip(panels, DEPTHS, strict=True):
        for axes, family in zip(line, PAPER_FAMILIES, strict=True):
            shade(axes, SEEDED)
            for layer in range(1, depth + 1):
                where = {"method": family, "layers": depth, "layer": layer}
                noise_stds, means, spreads = select(rows, "noise_std", "adjusted_loss", "std_over_seeds", **where)
                colour, label = colours[layer - 1], f"After {layer} layer{'s' * (layer > 1)}"
                axes.plot(noise_stds, means, color=colour, label=label)
                axes.fill_between(noise_stds, means - spreads, means + spreads, color=colour, alpha=0.15, lw=0)
            axes.plot(*floor, **STYLES["bayes"].options(marked=False))
            axes.set(ylim=(0, 1.05), xlim=(0, 10))
        line[0].set_ylabel(f"{depth} layers model\nAdj. eval loss")
    for axes, family in zip(panels[0], PAPER_FAMILIES, strict=True):
        axes.set_title(STYLES[family].label)
    for axes in panels[-1]:
        axes.set_xlabel("Noise level σ")
    figure.legend(*panels[-1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure
