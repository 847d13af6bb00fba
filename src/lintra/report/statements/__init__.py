"""The statements of the paper about its experiments, each judged by measurements with standard errors.

Losses are trimmed means, without the largest thousandth, of the published models as printed. A difference within
two standard errors is a tie and decides nothing.
"""

from lintra.report.statements import categorical, convergence, layers, performance, profiles, structure, table1
from lintra.report.statements.base import Statement, StatementResult, check_statement
from lintra.report.statements.table import markdown_table, statement_rows

STATEMENTS: tuple[Statement, ...] = (
    *performance.STATEMENTS,
    *table1.STATEMENTS,
    *profiles.STATEMENTS,
    *categorical.STATEMENTS,
    *structure.STATEMENTS,
    *convergence.STATEMENTS,
    *layers.STATEMENTS,
)
"""The statements, by what they are about."""

__all__ = ["STATEMENTS", "Statement", "StatementResult", "check_statement", "markdown_table", "statement_rows"]
