"""Training dynamics: loss and ω against steps, from the stored rows of an experiment."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lintra import zoo
from lintra.display import Row, select
from lintra.evaluation.measurement import Results
from lintra.experiments import stored_rows
from lintra.figures.style import STYLES

CAPTION = (
    "Training by the paper's recipe from one random start, with 10,000 steps at rate 4e-4 in place of 200,000 at "
    "1e-4, at uniform(0,5). Left: adjusted loss on 16,384 validation sequences, with two standard errors, and the "
    "published model of the fast recipe (dashed). Right: the four ω of every layer, for a Gram matrix divided by "
    "n; of Full the nearest ones."
)
NEEDS = ()
_OMEGAS = ("ω_xx", "ω_xy", "ω_yx", "ω_yy")
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")


def compute(results: Results) -> list[Row]:
    """Return a row for every model, step and layer, from the stored experiment. It needs no results."""
    return [
        {"method": row["family"], "layers": row["layers"], "noise": row["noise"], "step": row["step"]}
        | {"layer": layer, **dict(zip(_OMEGAS, np.ravel(omega).tolist(), strict=True))}
        | {"adjusted_loss": row["adjusted_loss"], "standard_error": row["standard_error"]}
        | {"published_loss": zoo.card(f"{row['family']}-{row['layers']}-{row['noise']}")["adjusted_loss"]}
        for row in stored_rows("dynamics")
        for layer, omega in enumerate(row["omega"], 1)
    ]


def draw(rows: list[Row]) -> Figure:
    """A row of panels for every model: the loss, then each ω."""
    models = list(dict.fromkeys((row["method"], row["layers"]) for row in rows))
    figure = Figure(figsize=(14, 2.6 * len(models) + 0.4), layout="constrained")
    panels = figure.subplots(len(models), 1 + len(_OMEGAS), squeeze=False)
    for line, (method, layers) in zip(panels, models, strict=True):
        chosen = [row for row in rows if (row["method"], row["layers"]) == (method, layers)]
        _draw_loss(line[0], chosen, method)
        line[0].set_ylabel(f"{STYLES[method].label}, {layers} layers\nadjusted loss")
        for axes, omega in zip(line[1:], _OMEGAS, strict=True):
            for layer in range(1, layers + 1):
                colour = _COLOURS[(layer - 1) % len(_COLOURS)]
                axes.plot(*select(chosen, "step", omega, layer=layer), color=colour, label=f"layer {layer}")
    for axes, title in zip(panels[0], ("Loss", *_OMEGAS), strict=True):
        axes.set_title(title)
    for axes in panels[-1]:
        axes.set_xlabel("Step")
    panels[0, -1].legend(fontsize=8)
    return figure


def _draw_loss(axes: Axes, rows: list[Row], method: str) -> None:
    step, loss, error = select(rows, "step", "adjusted_loss", "standard_error", layer=1)
    axes.plot(step, loss, color=STYLES[method].colour)
    axes.fill_between(
        step, loss - 2 * error, loss + 2 * error, color=STYLES[method].colour, alpha=0.3, linewidth=0
    )
    axes.axhline(rows[0]["published_loss"], color="#555555", linestyle=(0, (3, 2)))
    axes.set_yscale("log")
