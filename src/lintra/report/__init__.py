"""Table 1, all figures and the paper's statements on one page."""

from lintra.report.report import write_report

__all__ = [
    "write_report",
]
