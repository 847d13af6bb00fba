"""Names of `lintra.report.statements` that the report uses."""

from lintra.report.statements import STATEMENTS, StatementResult, check_statement

__all__ = ["STATEMENTS", "StatementResult", "check_statement"]
