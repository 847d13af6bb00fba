"""The paper's figures and three more.

Each is a module with a `CAPTION`, what it needs (`NEEDS`), `compute(results) -> rows` and `draw(rows) -> Figure`.
"""

from pathlib import Path
from types import ModuleType

from lintra.display import Row
from lintra.evaluation.measurement import Results
from lintra.figures import (
    dynamics,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    robustness,
)
from lintra.figures.style import save, styled
from lintra.registry import Registry

FIGURES: Registry[ModuleType] = Registry(
    "figures",
    {
        str(number): module
        for number, module in enumerate(
            (figure1, figure2, figure3, figure4, figure5, figure6, figure7, figure8), 1
        )
    }
    | {"robustness": robustness, "dynamics": dynamics},
)
"""Figures by number or name, each a module. A package adds its own by an entry point of `lintra.figures`."""


def draw_figure(name: str, results: Results, folder: Path) -> list[Path]:
    """Draw a figure, write its rows and pictures, and return the paths of the files.

    Args:
        name: A name of `FIGURES`.
        results: Results of the figure's `NEEDS`.
        folder: Folder for the files.

    Raises:
        UnknownModelError: If models are missing without which there is no figure.
    """
    module = FIGURES[name]
    rows: list[Row] = module.compute(results)
    with styled():
        return save(module.draw(rows), rows, folder, file_name(name))


def file_name(name: str) -> str:
    """The name of a figure's files, without a suffix.

    >>> file_name("4"), file_name("robustness")
    ('figure4', 'figure-robustness')
    """
    return f"figure{name}" if name.isdigit() else f"figure-{name}"
