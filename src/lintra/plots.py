"""Plots as values: curves with names and axes, drawn elsewhere."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Curve:
    """A line of a plot; nothing for `error` means none."""

    label: str
    x: Any
    y: Any
    error: Any = None
    dashed: bool = False


@dataclass(frozen=True)
class Plot:
    """Curves on common axes."""

    title: str
    xlabel: str
    ylabel: str
    curves: list[Curve]
    xscale: str = "log"
    yscale: str = "log"
