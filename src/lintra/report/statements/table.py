"""Statements and verdicts as rows, and as a table in Markdown."""

from collections.abc import Iterable, Sequence

from lintra.display import Row
from lintra.report.statements.base import StatementResult

VERDICTS = {True: "holds", False: "does not hold", None: "not decided"}
"""Words for a verdict."""


def statement_rows(results: Iterable[StatementResult]) -> list[Row]:
    """Return the rows of `statements.csv`: where, what, the verdict and the numbers."""
    return [
        {
            "source": result.source,
            "statement": result.statement,
            "verdict": VERDICTS[result.holds],
            "measured": result.measured,
        }
        for result in results
    ]


def markdown_table(rows: Sequence[Row]) -> str:
    r"""Write rows of `statements.csv` as a table in Markdown.

    >>> print(markdown_table([{"source": "§6", "statement": "A | B.", "verdict": "holds", "measured": "1 ± 0."}]))
    | where | statement | verdict | measured |
    |---|---|---|---|
    | §6 | A \| B. | holds | 1 ± 0. |
    """
    names = ("source", "statement", "verdict", "measured")
    cells = [[str(row[name]).replace("|", "\\|") for name in names] for row in rows]
    lines = [f"| {' | '.join(line)} |" for line in [["where", "statement", "verdict", "measured"], *cells]]
    return "\n".join([lines[0], "|---|---|---|---|", *lines[1:]])
