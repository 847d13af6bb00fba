"""Plots of plain curves, as checks of the theory and explanations of models have them."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lintra.display import Curve, Plot, Row
from lintra.figures.style import STYLES

_COLOURS = [style.colour for style in STYLES.values()]


def draw(plots: Sequence[Plot], *, num_columns: int | None = None, sharey: bool = False) -> Figure:
    """Draw plots side by side.

    Args:
        plots: The plots.
        num_columns: Number of plots in a row. `None` (default): all.
        sharey: Whether all have the same vertical axis. Default `False`.
    """
    num_columns = num_columns or len(plots)
    num_rows = -(-len(plots) // num_columns)
    figure = Figure(figsize=(5.2 * num_columns, 3.8 * num_rows), layout="constrained")
    panels = figure.subplots(num_rows, num_columns, squeeze=False, sharey=sharey).flat
    for axes, plot in zip(panels, plots, strict=False):
        for number, curve in enumerate(plot.curves):
            _draw_curve(axes, curve, _COLOURS[number % len(_COLOURS)])
        axes.set(title=plot.title, xlabel=plot.xlabel, ylabel=plot.ylabel, xscale=plot.xscale, yscale=plot.yscale)
        if plot.xticks is not None:
            axes.set_xticks(plot.xticks, [f"{tick:,}" for tick in plot.xticks])
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        if len(plot.curves) > 1:
            axes.legend(fontsize=8)
    return figure


def _draw_curve(axes: Axes, curve: Curve, colour: str) -> None:
    if curve.dashed:
        axes.plot(curve.x, curve.y, color=colour, linestyle=(0, (3, 2)), label=curve.label)
    else:
        axes.errorbar(curve.x, curve.y, curve.error, color=colour, marker="o", ms=3, capsize=2, label=curve.label)


def rows(plots: Sequence[Plot]) -> list[Row]:
    """The numbers behind the plots."""
    return [
        {"plot": plot.title, "curve": curve.label, "x": float(x), "y": float(y)}
        for plot in plots
        for curve in plot.curves
        for x, y in zip(curve.x, curve.y, strict=True)
    ]
