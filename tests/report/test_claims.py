from types import SimpleNamespace

from lintra.evaluation.measurement import Results
from lintra.evaluation.noise_profile import Profile
from lintra.evaluation.table1_column import Table1Column
from lintra.report.claims import STATEMENTS, check_statement


def test_a_statement_about_missing_models_is_not_measured(results):
    extrapolation = next(s for s in STATEMENTS if s.needs == (Profile("choice(1,3)", range(2, 8)),))
    found = check_statement(extrapolation, results)
    assert (found.statement, found.holds) == (extrapolation.text, None)
    assert found.measured == "Not measured, since diag-7 is missing."


def test_statements_are_checked_against_their_measurements():
    """AdaRR is beaten from σ_max = 4 on if both families are below it, and by one of them only it is not."""
    statement = STATEMENTS[0]

    def column(need, diag):
        losses = {("diag", 4): diag, ("full", 4): 0.1, ("ada-ridge", None): 0.2}
        rows = [SimpleNamespace(method=m, num_layers=n, adjusted_loss=loss) for (m, n), loss in losses.items()]
        return Table1Column(need.noise, rows, [])  # pyright: ignore[reportArgumentType]

    for diag, holds in ((0.15, True), (0.25, False)):
        measured = Results({need: column(need, diag) for need in statement.needs})
        assert check_statement(statement, measured).holds is holds
