"""The paper's figures and one more, each in its file: `compute` gives rows, `draw` makes a picture of rows."""

from pathlib import Path
from types import ModuleType

from lintra.evaluation.measurement import Measurements, Row
from lintra.figures import figure1, figure2, figure3, figure4, figure5, figure6, figure7, figure8
from lintra.figures.style import save, styled

FIGURES: dict[str, ModuleType] = {
    "1": figure1,
    "2": figure2,
    "3": figure3,
    "4": figure4,
    "5": figure5,
    "6": figure6,
    "7": figure7,
    "8": figure8,
}


def make(number: str, measurements: Measurements, folder: Path) -> tuple[list[Row], list[Path]]:
    """Compute and draw a figure, write its numbers and pictures, and return the rows and where the files are."""
    module = FIGURES[number]
    rows = module.compute(measurements)
    with styled():
        return rows, save(module.draw(rows), rows, folder, f"figure{number}")
