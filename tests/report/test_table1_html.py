import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from lintra.evaluation import paper
from lintra.evaluation.paper import Verdict
from lintra.evaluation.table1_column import Table1Column
from lintra.report import table1_html
from lintra.report.table1_html import MARKS, exceptions, gains, number, printed_number
from table1_cells import NOISE, cell

CELL = re.compile(r'<td class="([^"]*)" title="([^"]*)">(.*?)(?:<small>(.) (.*?)</small>)?</td>')


def shown_cells(column):
    """Class, details, number with its mark, verdict and printed number of every cell, as they are on the page."""
    return CELL.findall(table1_html.table([column]))


def value_of(text):
    return float(re.sub("<.*?>|†", "", text).replace("∞", "inf"))


def random_column(rng):
    """Cells of all methods with medians around the printed losses, some of them dominated or exploded."""
    rows = []
    for (method, num_layers, noise), printed in paper.printed_table1().items():
        if noise == NOISE:
            median = printed.value * np.exp(rng.normal(0, 0.05))
            share = rng.choice([0.0, 0.09, 0.5, np.nan])
            explosion = rng.choice([median, 1e4, np.inf])
            fields = {"top_share": share, "adjusted_loss": explosion, "top_ten_share": rng.choice([0.0, 0.5])}
            rows.append(cell(method, num_layers, median, rng.uniform(0.001, 0.05), **fields))
    return Table1Column(NOISE, rows, [])


@pytest.mark.parametrize("seed", range(20))
def test_the_number_of_a_cell_and_its_verdict_never_contradict_each_other(seed):
    """Whatever the mean is: the number that is shown is the one that was compared."""
    column = random_column(np.random.default_rng(seed))
    found = shown_cells(column)
    assert len(found) == len(column.rows) == 24
    by_mark = {mark: verdict for verdict, mark in MARKS.items()}
    for classes, details, text, mark, printed_text in found:
        shown, printed, verdict = value_of(text), float(printed_text), by_mark[mark]
        assert classes.split()[0] == verdict
        ((low, high),) = re.findall(r"median \S+ \((\S+) to (\S+)\)", details)
        low, high = float(low), float(high)
        rounding = 5.1e-4 if shown >= 0.1 else 5.1e-5  # half the last digit that is shown, and of the details
        assert low - rounding <= shown <= high + rounding
        if verdict == Verdict.BELOW:
            assert shown < printed
            assert high < printed
        if verdict == Verdict.ABOVE:
            assert shown > printed
            assert low > printed
        if verdict == Verdict.LEVEL:
            assert low - 0.00051 <= printed <= high + 0.00051
        (share,) = re.findall(r"up to (\S+) % of a", details)
        assert (verdict == Verdict.DOMINATED) == (float(share) > 10)


def test_a_mean_that_explodes_is_on_hover_and_marked():
    """The mean is 10.4 and the protocol's median level with the paper: the table shows the median."""
    exploded = cell(
        "gd++", 4, 1.2e-4, 0.2, noise="uniform(0,0)", adjusted_loss=10.4, top_ten_share=0.99, worst=1e7
    )
    exploded = replace(exploded, num_exploded=1)
    ((_, details, text, mark, printed),) = shown_cells(Table1Column("uniform(0,0)", [exploded], []))
    assert (text, mark, printed) == ("1.20e-04<sup>†</sup>", "●", "9.91e-05")
    assert "mean 10.4 ± 0.001 over 1,000,000 sequences" in unescape(details)
    assert "worst sequence 1e+07; 1 of 1,000,000 exploded" in details


def bold(rows):
    column = Table1Column(NOISE, rows, [])
    return [row.method for row, found in zip(rows, shown_cells(column), strict=True) if "<strong>" in found[2]]


def test_only_the_best_of_the_safe_models_is_in_bold():
    rows = [cell("gd++", 7, 0.3), cell("diag", 7, 0.05), cell("full", 7, 0.04)]
    assert bold(rows) == ["full"]
    assert bold([*rows[:2], replace(rows[2], printed_safe=False)]) == ["diag"]
    assert bold([*rows[:2], replace(rows[2], num_exploded=1)]) == ["diag"]
    assert bold([*rows[:2], replace(rows[2], printed_safe=None)]) == ["diag"]  # not known to be safe
    assert bold([replace(row, printed_safe=None) for row in rows]) == []
    assert bold([*rows, cell("bayes", None, 0.039)]) == ["full"]  # baselines are no models


def test_gains_are_a_table_of_cells_below_the_paper():
    rows = [cell("full", 7, 0.040), cell("full", 6, 0.039), cell("diag", 7, 0.02, top_share=0.5)]
    text = gains([Table1Column(NOISE, rows, [])])
    assert re.findall("<th scope=row>(.*?)</th>", text) == ["Full-7", "Full-6"]  # by ratio, none of them dominated
    assert "<td>0.0400</td><td>0.0396 to 0.0404</td><td>0.047</td><td>0.85</td><td>0 of 1,000,000</td>" in text
    assert gains([Table1Column(NOISE, rows[2:], [])]) == "<p>None.</p>"


def test_exceptions_name_cells_above_dominated_or_printed_below_the_floor():
    rows = [
        cell("gd++", 7, 0.3617),
        cell("full", 7, 0.06),
        cell("diag", 7, 0.047, top_share=0.5),
        cell("full", 6, 0.03),
    ]
    text = exceptions([Table1Column(NOISE, rows, [])])
    lines = re.findall("<li>(.*?)</li>", text)
    assert [line.partition(",")[0] for line in lines] == ["GD++-7", "Full-7", "Diag-7", "GD++-7"]
    assert lines[0] == "GD++-7, uniform(0,5): 0.362 (0.358 to 0.365) against 0.344"
    assert "; ten of 100,000 sequences have up to 50 % of the sum; 0 of 1,000,000 exploded" in lines[2]
    assert "the paper prints 0.344, the floor is 0.3614, above it by more than the paper's own" in unescape(
        lines[3]
    )
    assert text.endswith("<h3>Orderings that do not hold</h3><p>None.</p>")


def test_numbers_are_written_with_the_digits_that_tables_have():
    assert [number(value) for value in (0.0471, 0.896, 1.14e-7, 0.0)] == ["0.0471", "0.896", "1.14e-07", "0"]
    assert number(np.inf) == "∞"
    assert [printed_number(value) for value in (0.047, 0.05, 1.639, 1.14e-7)] == [
        "0.047",
        "0.050",
        "1.639",
        "1.14e-07",
    ]
