"""Panels that several figures have in common."""

from matplotlib.axes import Axes

from lintra.display import Row, select
from lintra.figures.style import STYLES, shade
from lintra.models.families import PAPER_FAMILIES


def against_depth(axes: Axes, rows: list[Row], noise: str) -> None:
    """Loss against depth on a logarithmic scale, baselines as horizontal lines."""
    for method, style in STYLES.items():
        if method in PAPER_FAMILIES:
            layers, losses = select(rows, "layers", "adjusted_loss", noise=noise, method=method)
            axes.plot(layers, losses, **style.options())
        else:
            (losses,) = select(rows, "adjusted_loss", noise=noise, method=method)
            if len(losses) and losses[0] > 1e-20:  # without noise all baselines are exact
                axes.axhline(losses[0], **style.options())
    axes.set_yscale("log")
    axes.set_xticks([1, 3, 5, 7])


def profile(axes: Axes, rows: list[Row], noise: str, num_layers: int, column: str = "adjusted_loss") -> None:
    """Loss against the noise level, for models of one depth; the prior's noise levels are shaded."""
    shade(axes, noise)
    for method, style in STYLES.items():
        depth = num_layers if method in PAPER_FAMILIES else None
        noise_stds, losses = select(rows, "noise_std", column, noise=noise, method=method, layers=depth)
        axes.plot(noise_stds, losses, **style.options(marked=False))
