from pathlib import Path

from lintra.report.statements import STATEMENTS, StatementResult, markdown_table, statement_rows

PAGE = Path(__file__).parents[3] / "docs" / "statements.md"


def test_rows_have_a_word_for_every_verdict():
    results = [StatementResult("A.", "1 ± 0.", holds, "§6") for holds in (True, False, None)]
    rows = statement_rows(results)
    assert [row["verdict"] for row in rows] == ["holds", "does not hold", "not decided"]
    assert list(rows[0]) == ["source", "statement", "verdict", "measured"]


def test_bars_in_cells_are_escaped():
    (row,) = statement_rows([StatementResult("|A − B| is small.", "a | b.", True, "§6")])
    line = markdown_table([row]).splitlines()[-1]
    assert line == r"| §6 | \|A − B\| is small. | holds | a \| b. |"


def test_the_documentation_has_every_statement():
    table = (
        PAGE.read_text(encoding="utf-8").partition("<!-- table: statements -->")[2].partition("<!-- end -->")[0]
    )
    rows = [line for line in table.strip().splitlines() if line.startswith("| ")][1:]
    escaped = [(s.source, s.text.replace("|", r"\|")) for s in STATEMENTS]
    assert [tuple(row.removeprefix("| ").split(" | ")[:2]) for row in rows] == escaped
