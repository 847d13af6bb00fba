"""Tables of the documentation are what `make tables` writes."""

import math
from pathlib import Path

import pytest
import tables

from lintra import figures, zoo
from lintra.display import to_csv
from lintra.evaluation.estimate import ProtocolQuantiles, Tail
from lintra.evaluation.paper import NOISES
from lintra.evaluation.table1_column import Table1Row
from lintra.models.families import PAPER_FAMILIES

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_tables_from_cards_and_csv_files_are_what_the_command_writes(page):
    text = page.read_text(encoding="utf-8")
    assert tables.fill(text, tables.available_tables()) == text


def test_every_table_has_its_markers():
    text = "".join(page.read_text(encoding="utf-8") for page in tables.PAGES)
    names = [*tables.available_tables(), *tables.REPORT_TABLES]
    assert [text.count(f"<!-- table: {name} -->") for name in names] == [1] * len(names)
    assert set(tables.available_tables(Path("report"))) == set(names)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- table: tails -->\n",
        "<!-- end -->\n",
        "<!-- table: tails -->\n<!-- table: tails -->\n<!-- end -->\n",
        "<!-- table: tales -->\n<!-- end -->\n",
    ],
)
def test_markers_that_do_not_match_are_rejected(text):
    with pytest.raises(ValueError, match=r"^`text` has "):
        tables.fill(text, {"tails": lambda: "table"})


def test_a_table_is_replaced_and_all_else_stays():
    text = "before\n\n<!-- table: tails -->\n\nold\n\n<!-- end -->\n\nafter <!-- end --> in a line\n"
    filled = tables.fill(text, {"tails": lambda: "new"})
    assert filled == text.replace("old", "new")
    assert tables.fill(filled, {"tails": lambda: "new"}) == filled


def table1_row(method, layers, noise, loss, verdict):
    quantiles = ProtocolQuantiles(loss, loss / 2, 2 * loss)
    tail = Tail(loss, loss, 0.1, 1.0, 0.0)
    return Table1Row(method, layers, noise, loss, loss / 100, 0.25, 0.039, quantiles, verdict, tail, 0.1)


def test_tables_of_a_report_are_made_from_the_files_that_it_writes(tmp_path):
    rows = [
        table1_row(method, None, noise, 0.5, "level")
        for noise in NOISES
        for method in ("const-ridge", "ada-ridge", "tuned-ridge", "bayes")
    ]
    rows += [table1_row("full", 3, "uniform(0,3)", 0.5, "above"), table1_row("full", 4, NOISES[0], 0.5, "below")]
    rows += [table1_row(family, 7, noise, 0.5, "level") for family in PAPER_FAMILIES for noise in NOISES]
    (tmp_path / "summary.txt").write_text("One.\nTwo.\n")
    statement = {"source": "§6", "statement": "A.", "verdict": "holds", "measured": "1 ± 0."}
    (tmp_path / "statements.csv").write_text(to_csv([statement]))
    (tmp_path / "table1.csv").write_text(to_csv([row.to_row() for row in rows]))
    (tmp_path / "table1-details.csv").write_text(to_csv([row.to_details() for row in rows]))
    excess = {"excess": 0.00563, "standard_error": 0.00003, "bayes_floor": 0.039}
    sizes = [("full", 1, 7), ("full", 1, 8), ("diag", 2, 12), ("const-ridge", None, None)]
    figure8 = [
        {"noise": noise, "method": method, "heads": heads, "layers": layers} | excess
        for noise in figures.FIGURES["8"].NOISES
        for method, heads, layers in sizes
    ]
    (tmp_path / "figure8.csv").write_text(to_csv(figure8))
    written = {name: table() for name, table in tables.available_tables(tmp_path).items()}
    assert written["summary"] == "- One.\n- Two."
    assert written["statements"].endswith("| §6 | A. | holds | 1 ± 0. |")
    cells = " | ".join(["0.500 ± 0.005 (0.25)"] * 3)
    assert f"| uniform(0,5) | {cells} | 0.500 ± 0.005 |" in written["headline"]
    assert len(written["baselines"].split("\n")) == 2 + len(NOISES)
    assert "| uniform(0,5) | 0.500 ± 0.005 | *0.25* |" in written["baselines"]
    assert written["above-paper"].split("\n")[2:] == ["| full-3 at uniform(0,3) | 0.5 | 0.25 … 1 | 0.25 |"]
    assert written["figure8"].split("\n")[2:] == [
        "| Diag, two heads | 12 | 0.00563 ± 0.00003 | 0.00563 ± 0.00003 |",
        "| Full | 7 | 0.00563 ± 0.00003 | 0.00563 ± 0.00003 |",
        "| ConstRR |  | 0.00563 ± 0.00003 | 0.00563 ± 0.00003 |",
    ]


def tail_card(worst, damped, single, printed):
    counts = {"num_exploded": damped, "float32_num_exploded": single, "printed_num_exploded": printed}
    return {"worst": worst, "median": 0.0596, "gate_worst": 63.2, "printed_gate_worst": 1.7e8} | counts


def test_the_table_of_tails_has_the_models_with_a_large_loss_and_those_that_fail_the_gate():
    cards = {
        "calm": tail_card(3.0, 0, 0, 0),
        "large": tail_card(349_685.2, 0, 0, 0),
        "infinite": tail_card(math.inf, 0, 0, 2),
        "single": tail_card(3.0, 0, 1, 0),
        "unsafe": tail_card(3.0, 1_200, 1, 9),
    }
    lines = tables.tails(cards).split("\n")
    assert lines[2:] == [
        "| `unsafe` | 1,200 | 1 | 9 | 63 | 1.7e8 | 0.0596 |",
        "| `infinite` | 0 | 0 | 2 | 63 | 1.7e8 | 0.0596 |",
        "| `large` | 0 | 0 | 0 | 63 | 1.7e8 | 0.0596 |",
        "| `single` | 0 | 1 | 0 | 63 | 1.7e8 | 0.0596 |",
    ]
    assert tables.tails({"calm": cards["calm"]}) == "None."


def test_models_that_explode_are_counted_by_depth():
    flags = [(True, True, True), (True, False, True), (False, False, True)]
    names = ("safe", "printed_safe", "float32_safe")
    cards = {str(flag): {"layers": 2 + flag[0]} | dict(zip(names, flag, strict=True)) for flag in flags}
    assert tables.gate(cards).split("\n")[2:] == ["| 2 | 1 | 1 | 1 | 0 |", "| 3 | 2 | 1 | 0 | 0 |"]


def test_the_published_table_of_tails_has_every_model_above_the_limit():
    large = [name for name, card in zoo.published().cards.items() if card["worst"] > 1000]
    written = tables.tails(zoo.published().cards)
    assert all(f"| `{name}` |" in written for name in large)
