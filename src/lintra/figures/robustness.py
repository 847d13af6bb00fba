"""Robustness: models as printed and damped on contexts that are unlike those of training."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lintra.display import Row
from lintra.evaluation.measurement import Results
from lintra.evaluation.robustness import CONTEXT_KINDS, Robustness

CAPTION = (
    "Published models as printed and damped, on 20,000 contexts of each kind. Left and middle: share of contexts "
    "on which a model explodes, with ½‖w − w_τ‖² above 5d. Right: median of this loss of the damped model, "
    "relative to the oracle's, or the median itself (in italics) where the oracle's is below 1e-20. With one "
    "label + 30 the oracle itself explodes on some contexts."
)
MODELS = (
    "full-12-uniform(0,5)",
    "full-7-uniform(0,5)",
    "full-6-choice(1,3,5)",
    "full-3-uniform(0,3)",
    "diag-10-choice(1,3)",
    "diag-7-uniform(0,5)",
    "diag-3-uniform(0,5)",
    "diag-3-choice(1,3)",
    "gd++-7-uniform(0,0)",
    "gd++-4-uniform(0,1)",
)
NEEDS = tuple(map(Robustness, MODELS))
_TINY = 1e-20  # an oracle's median that is zero but for rounding


def compute(results: Results) -> list[Row]:
    """Return a row for every model, kind of contexts, and the model as printed or damped."""
    return [row for need in NEEDS for row in results[need]]


def draw(rows: list[Row]) -> Figure:
    """Three tables with coloured cells: exploded as printed, exploded damped, and the median over the oracle's."""
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    printed_axes, damped_axes, ratio_axes = figure.subplots(1, 3, sharey=True)
    printed, damped = ([row for row in rows if row["damped"] == flag] for flag in (False, True))
    for axes, title, of_model in ((printed_axes, "as printed", printed), (damped_axes, "damped", damped)):
        cells = {_cell(row): (row["exploded"], _percent(row["exploded"]), False) for row in of_model}
        _draw_cells(axes, f"Share exploded, {title}", cells, (0, 1))
    cells = {}
    for row in damped:
        is_tiny = row["oracle_median"] < _TINY
        ratio = row["median"] / row["oracle_median"]
        text = f"{row['median']:.0e}" if is_tiny else f"{ratio:.2f}"
        cells[_cell(row)] = (0.0 if is_tiny else np.clip(np.log2(ratio), 0, 1), text, is_tiny)
    _draw_cells(ratio_axes, "Median, damped, over the oracle's", cells, (0, 1))
    return figure


def _cell(row: Row) -> tuple[str, str]:
    return f"{row['method']}-{row['layers']}-{row['noise']}", row["contexts"]


def _percent(share: float) -> str:
    percent = 100 * share
    return "0" if share == 0 else f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def _draw_cells(
    axes: Axes, title: str, cells: dict[tuple[str, str], tuple[float, str, bool]], limits: tuple[float, float]
) -> None:
    """Draw a table: a colour, a text and whether it is in italics for every model and kind of contexts."""
    models, kinds = (list(dict.fromkeys(cell[axis] for cell in cells)) for axis in (0, 1))
    colours = np.full((len(models), len(kinds)), np.nan)
    for (model, kind), (colour, text, is_italic) in cells.items():
        row, column = models.index(model), kinds.index(kind)
        colours[row, column] = colour
        style = "italic" if is_italic else "normal"
        ink = "white" if colour > 0.6 * limits[1] else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, fontstyle=style, color=ink)
    axes.imshow(colours, cmap="Oranges", vmin=limits[0], vmax=1.3 * limits[1], aspect="auto")
    labels = [CONTEXT_KINDS[kind].label for kind in kinds]
    axes.set_xticks(range(len(kinds)), labels, rotation=30, ha="right")
    axes.set_yticks(range(len(models)), models)
    axes.set_title(title)
    axes.grid(False)
