"""Table 1, all figures and the paper's statements on one page."""

from lintra.report.report import make

__all__ = [
    "make",
]
