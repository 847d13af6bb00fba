"""Plots of plain curves, as checks of the theory and accounts of models have them."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lintra.display import Curve, Plot
from lintra.figures.style import LOOKS

_COLOURS = [look.colour for look in LOOKS.values()]


def draw(plots: Sequence[Plot]) -> Figure:
    """Plots side by side."""
    figure = Figure(figsize=(5.2 * len(plots), 3.8), layout="constrained")
    for axes, plot in zip(figure.subplots(1, len(plots), squeeze=False)[0], plots, strict=True):
        for place, curve in enumerate(plot.curves):
            _draw_curve(axes, curve, _COLOURS[place % len(_COLOURS)])
        axes.set(title=plot.title, xlabel=plot.xlabel, ylabel=plot.ylabel, xscale=plot.xscale, yscale=plot.yscale)
        if len(plot.curves) > 1:
            axes.legend(fontsize=8)
    return figure


def _draw_curve(axes: Axes, curve: Curve, colour: str) -> None:
    if curve.dashed:
        axes.plot(curve.x, curve.y, color=colour, linestyle=(0, (3, 2)), label=curve.label)
    else:
        axes.errorbar(curve.x, curve.y, curve.error, color=colour, marker="o", ms=3, capsize=2, label=curve.label)


def rows(plots: Sequence[Plot]) -> list[dict]:
    """The numbers behind the plots."""
    return [
        {"plot": plot.title, "curve": curve.label, "x": float(x), "y": float(y)}
        for plot in plots
        for curve in plot.curves
        for x, y in zip(curve.x, curve.y, strict=True)
    ]
