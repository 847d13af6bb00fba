"""Panels that several figures have in common."""

from matplotlib.axes import Axes

from lintra.display import select
from lintra.evaluation.measurement import Row
from lintra.figures.style import LOOKS, shade
from lintra.models.families import VARIANTS


def against_depth(axes: Axes, rows: list[Row], noise: str) -> None:
    """Loss against depth on a logarithmic scale, baselines as horizontal lines."""
    for method, look in LOOKS.items():
        if method in VARIANTS:
            layers, losses = select(rows, "layers", "adjusted_loss", noise=noise, method=method)
            axes.plot(layers, losses, **look.options())
        else:
            (losses,) = select(rows, "adjusted_loss", noise=noise, method=method)
            if len(losses) and losses[0] > 1e-20:  # without noise all baselines are exact
                axes.axhline(losses[0], **look.options())
    axes.set_yscale("log")
    axes.set_xticks([1, 3, 5, 7])


def profile(axes: Axes, rows: list[Row], noise: str, layers: int, column: str = "adjusted_loss") -> None:
    """Loss against the noise level, for models of one depth; the prior's noise levels are shaded."""
    shade(axes, noise)
    for method, look in LOOKS.items():
        depth = layers if method in VARIANTS else None
        stds, losses = select(rows, "std", column, noise=noise, method=method, layers=depth)
        axes.plot(stds, losses, **look.options(marked=False))
