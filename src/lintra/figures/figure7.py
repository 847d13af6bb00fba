"""Figure 7: adjusted loss at each noise level, after each layer of models with 2 to 8 layers."""

import numpy as np
from matplotlib.figure import Figure

from lintra.display import Row, select
from lintra.evaluation.layers import SEEDED, Layers
from lintra.evaluation.measurement import Results
from lintra.figures.figure5 import colours_of_depth, over_seeds, quantiles_over_seeds
from lintra.figures.panels import AS_PRINTED
from lintra.figures.style import STYLES, shade
from lintra.models.families import PAPER_FAMILIES

CAPTION = (
    "Median over 8,192 sequences of the adjusted loss at each noise level after each layer, of models trained at "
    "uniform(0,5) (shaded). Lines: median over seeds; bands: from the smallest to the largest of five seeds (of "
    f"GD++ those that are published, or one). {AS_PRINTED} Far from their noise levels models explode, so means "
    "are not shown."
)
DEPTHS = range(2, 9)
NOISE_STDS = {f"fixed({noise_std:g})": float(noise_std) for noise_std in np.linspace(0, 10, 21)}
LOSSES = Layers(tuple(NOISE_STDS), DEPTHS)
NEEDS = (LOSSES,)
_MEDIANS = ("median", "median_low", "median_high")


def compute(results: Results) -> list[Row]:
    """Return mean and standard deviation over seeds after every layer, and the floor, at every noise level.

    These are of means over sequences. `median`, `median_low` and `median_high` are the median, the smallest and
    the largest value over seeds of the median over sequences.
    """
    rows = []
    for noise, noise_std in NOISE_STDS.items():
        measured = [row for row in results[LOSSES] if row["noise"] == noise]
        floor = {"method": "bayes", "layers": None, "layer": None, "noise_std": noise_std, "std_over_seeds": None}
        (least,), (median,) = select(measured, "adjusted_loss", "median", method="bayes")
        medians = dict.fromkeys(_MEDIANS, float(median))
        rows.append(floor | {"adjusted_loss": float(least)} | medians)
        for family in PAPER_FAMILIES:
            for depth in DEPTHS:
                model = {"method": family, "layers": depth}
                _, *of_medians = quantiles_over_seeds(measured, "median", **model)
                for layer, mean, spread, *medians in zip(*over_seeds(measured, **model), *of_medians, strict=True):
                    where = {"layer": int(layer), "noise_std": noise_std, "std_over_seeds": float(spread)}
                    of_seeds = dict(zip(_MEDIANS, map(float, medians), strict=True))
                    rows.append(model | where | {"adjusted_loss": float(mean)} | of_seeds)
    return rows


def draw(rows: list[Row]) -> Figure:
    """A row for every depth, a column for every family."""
    figure = Figure(figsize=(9, 13.5), layout="constrained")
    panels = figure.subplots(len(DEPTHS), len(PAPER_FAMILIES), sharex=True, sharey=True)
    colours = colours_of_depth(max(DEPTHS))
    floor = select(rows, "noise_std", "median", method="bayes")
    for line, depth in zip(panels, DEPTHS, strict=True):
        for axes, family in zip(line, PAPER_FAMILIES, strict=True):
            shade(axes, SEEDED)
            for layer in range(1, depth + 1):
                where = {"method": family, "layers": depth, "layer": layer}
                noise_stds, medians, low, high = select(rows, "noise_std", *_MEDIANS, **where)
                colour, label = colours[layer - 1], f"After {layer} layer{'s' * (layer > 1)}"
                axes.plot(noise_stds, medians, color=colour, label=label)
                axes.fill_between(noise_stds, low, high, color=colour, alpha=0.15, lw=0)
            axes.plot(*floor, **STYLES["bayes"].options(marked=False))
            axes.set(ylim=(0, 1.05), xlim=(0, 10))
        line[0].set_ylabel(f"{depth} layers model\nMedian adj. loss")
    for axes, family in zip(panels[0], PAPER_FAMILIES, strict=True):
        axes.set_title(STYLES[family].label)
    for axes in panels[-1]:
        axes.set_xlabel("Noise level σ")
    figure.legend(*panels[-1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure
