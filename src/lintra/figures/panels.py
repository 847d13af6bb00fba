"""Panels that several figures have in common."""

from typing import Any

from matplotlib.axes import Axes

from lintra.display import Row, select
from lintra.figures.style import STYLES, even_log_ticks, shade
from lintra.models.families import PAPER_FAMILIES

AS_PRINTED = "Models are as printed."
"""Last sentence of the captions of figures of models."""
MEDIAN_OF_MEANS = "the median of the means of ten parts of the sequences"
"""The statistic of most figures, in which single sequences make no spikes."""
HOLLOW = "Hollow markers: the cell of Table 1 is dominated by few sequences."
"""What panels with the loss against depth mark."""


def against_depth(axes: Axes, rows: list[Row], noise: str) -> None:
    """Loss against depth on a logarithmic scale, baselines as horizontal lines.

    Markers of models of which few sequences dominate a repetition of the paper's protocol are hollow.
    """
    for method, style in STYLES.items():
        if method in PAPER_FAMILIES:
            layers, losses, dominated = select(
                rows, "layers", "median_of_means", "is_dominated", noise=noise, method=method
            )
            axes.plot(layers, losses, **style.options())
            dominated = dominated.astype(bool)  # without models it is an empty array of numbers
            hollow: dict[str, Any] = style.options() | {"linestyle": "", "markerfacecolor": "white"}
            axes.plot(layers[dominated], losses[dominated], **hollow)
        else:
            (losses,) = select(rows, "median_of_means", noise=noise, method=method)
            if len(losses) and losses[0] > 1e-20:  # without noise all baselines are exact
                axes.axhline(losses[0], **style.options())
    axes.set_yscale("log")
    axes.set_xticks([1, 3, 5, 7])
    even_log_ticks(axes)


def profile(axes: Axes, rows: list[Row], noise: str, num_layers: int, column: str = "median_of_means") -> None:
    """Loss against the noise level, for models of one depth; the prior's noise levels are shaded."""
    shade(axes, noise)
    for method, style in STYLES.items():
        depth = num_layers if method in PAPER_FAMILIES else None
        noise_stds, losses = select(rows, "noise_std", column, noise=noise, method=method, layers=depth)
        axes.plot(noise_stds, losses, **style.options(marked=False))
