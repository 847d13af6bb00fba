"""The explorer: models of a zoo in one page for the browser."""

from lintra.explorer.curves import curves_file, measure, page_models, read_curves, write_curves
from lintra.explorer.page import page

__all__ = [
    "curves_file",
    "measure",
    "page",
    "page_models",
    "read_curves",
    "write_curves",
]
