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
from matplotlib.ticker import FixedLocator, FuncFormatter, LogFormatterMathtext, LogLocator, NullLocator

from lintra.baselines import BASELINES, TABLE1_BASELINES
from lintra.display import Row, to_csv
from lintra.models.families import FAMILIES, PAPER_FAMILIES
from lintra.problem.noise import AbstractDiscretePrior, parse_noise
from lintra.runtime.files import write_atomic

FORMATS = ("png", "pdf", "svg")


@dataclass(frozen=True)
class Style:
    """How a method is drawn."""

    label: str
    colour: str
    marker: str = ""
    line: Any = "-"
    width: float = 1.4
    marker_size: float = 4.0
    marker_width: float = 1.0

    def options(self, *, marked: bool = True) -> dict[str, Any]:
        """As options of `Axes.plot`."""
        return {
            "label": self.label,
            "color": self.colour,
            "marker": self.marker if marked else "",
            "linestyle": self.line,
            "linewidth": self.width,
            "markersize": self.marker_size,
            "markeredgewidth": self.marker_width,
        }


_FAMILY_MARKERS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"))  # colour, marker
_BASELINE_LINES = (  # colour, dashes, width
    ("#56B4E9", (0, (6, 2)), 1.4),
    ("#E69F00", (0, (3, 2)), 1.4),
    ("#CC79A7", (0, (5, 1, 1, 1)), 1.4),
    ("#000000", (0, (1, 1)), 1.8),
)
STYLES = {
    name: Style(FAMILIES[name].label, *marker)
    for name, marker in zip(PAPER_FAMILIES, _FAMILY_MARKERS, strict=True)
} | {
    name: Style(BASELINES[name].label, colour, line=line, width=width)
    for name, (colour, line, width) in zip(TABLE1_BASELINES, _BASELINE_LINES, strict=True)
}
"""Styles of the methods of Table 1 by name, in its order."""

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
    if isinstance(prior, AbstractDiscretePrior):
        for noise_std in prior.atoms()[0]:
            axes.axvline(float(noise_std), color="#cccccc", linewidth=5, zorder=0)
    else:
        axes.axvspan(*prior.support(), color="#ececec", zorder=0)


def even_log_ticks(axes: Axes) -> None:
    """Put ticks at even distances on a logarithmic vertical axis: whole powers of ten, or 1, 2, 5 times them."""
    low, high = np.log10(axes.get_ylim())
    step = max(round((high - low) / 4), 1)
    if high - low > 2.3:  # at least two powers of ten in sight, and too many ticks at 1, 2, 5
        axes.yaxis.set_major_locator(FixedLocator([10.0**n for n in range(-30, 31) if n % step == 0]))
        axes.yaxis.set_major_formatter(LogFormatterMathtext())
    else:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def stacked(figure: Figure, heights: Sequence[float]) -> list[SubFigure]:
    """Parts of a figure, one above the other."""
    return list(np.asarray(figure.subfigures(len(heights), 1, height_ratios=heights)).flat)


def legend(figure: Figure, styles: Iterable[Style]) -> None:
    """One legend for all panels, below them."""
    handles = [mpl.lines.Line2D([], [], **style.options()) for style in styles]  # pyright: ignore[reportAttributeAccessIssue]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def save(figure: Figure, rows: Sequence[Row], folder: Path, name: str) -> list[Path]:
    """Write a figure's rows and its pictures, each atomically, and return the paths of the files."""
    paths = [folder / f"{name}.csv"]
    write_atomic(paths[0], to_csv(rows).encode())
    for kind in FORMATS:
        paths.append(folder / f"{name}.{kind}")
        save_picture(figure, paths[-1])
    return paths


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure atomically, in the format of the file's suffix: `.png`, `.pdf` or `.svg`."""
    picture, kind = io.BytesIO(), path.suffix.removeprefix(".")
    date = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    figure.savefig(picture, format=kind, metadata=date)
    write_atomic(path, picture.getvalue())
