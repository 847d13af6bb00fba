"""One style for all figures: the same method always has the same colour, marker and line.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; markers and dashes say the same in grey.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from lintra.display import to_csv
from lintra.problem.noise import AbstractDiscrete, parse_noise
from lintra.runtime.files import write_aside

FORMATS = ("png", "pdf", "svg")


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    label: str
    colour: str
    marker: str = ""
    line: Any = "-"
    width: float = 1.4

    def options(self, *, marked: bool = True) -> dict[str, Any]:
        """As options of `Axes.plot`."""
        return {
            "label": self.label,
            "color": self.colour,
            "marker": self.marker if marked else "",
            "linestyle": self.line,
            "linewidth": self.width,
            "markersize": 4,
        }


LOOKS = {
    "gd++": Look("GD++", "#0072B2", "o"),
    "diag": Look("Diag", "#D55E00", "s"),
    "full": Look("Full", "#009E73", "^"),
    "const-ridge": Look("ConstRR", "#56B4E9", line=(0, (6, 2))),
    "ada-ridge": Look("AdaRR", "#E69F00", line=(0, (3, 2))),
    "tuned-ridge": Look("TunedRR", "#CC79A7", line=(0, (5, 1, 1, 1))),
    "bayes": Look("Bayes", "#000000", line=(0, (1, 1)), width=1.8),
}

_SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "lintra",
    "svg.fonttype": "path",
    "figure.dpi": 100,
    "savefig.dpi": 160,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in lintra's style."""
    with mpl.rc_context(_SETTINGS):
        yield


def shade(axes: Axes, noise: str) -> None:
    """Shade the noise levels that a prior has: a range, or a line for every one."""
    prior = parse_noise(noise)
    nodes = prior.quadrature()[0]
    if isinstance(prior, AbstractDiscrete):
        for level in nodes:
            axes.axvline(float(level), color="#cccccc", linewidth=5, zorder=0)
    else:
        axes.axvspan(0.0, round(float(nodes.max())), color="#ececec", zorder=0)


def stacked(figure: Figure, heights: Sequence[float]) -> list[SubFigure]:
    """Parts of a figure, one above the other."""
    return list(np.asarray(figure.subfigures(len(heights), 1, height_ratios=heights)).flat)


def legend(figure: Figure, looks: Iterable[Look]) -> None:
    """One legend for all panels, below them."""
    handles = [mpl.lines.Line2D([], [], **look.options()) for look in looks]  # pyright: ignore[reportAttributeAccessIssue]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def save(figure: Figure, rows: Sequence[dict[str, Any]], folder: Path, name: str) -> list[Path]:
    """Write a figure's numbers and its pictures, each aside and renamed, and return where they are."""
    paths = [folder / f"{name}.csv"]
    write_aside(paths[0], to_csv(rows).encode())
    for kind in FORMATS:
        picture = io.BytesIO()
        date = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
        figure.savefig(picture, format=kind, metadata=date)
        paths.append(folder / f"{name}.{kind}")
        write_aside(paths[-1], picture.getvalue())
    return paths
