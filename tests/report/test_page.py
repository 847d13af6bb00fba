import re

from lintra.evaluation.table1_column import Table1Column
from lintra.report.page import Picture, page
from lintra.report.statements import StatementResult
from table1_cells import NOISE, cell


def made_page(tmp_path, **changes):
    (tmp_path / "picture.png").write_bytes(b"")
    parts = {
        "facts": [("Models", "two")],
        "columns": [Table1Column(NOISE, [cell("full", 7, 0.04)], [])],
        "pictures": [Picture("Figure 1", "A caption.", tmp_path / "picture.png")],
        "verdicts": [
            StatementResult("It holds.", "Measured.", True),
            StatementResult("Open.", "Not decided.", None),
        ],
        "missing": [],
    }
    return page(**{**parts, **changes})


def test_every_entry_of_the_contents_leads_to_a_part_of_the_page(tmp_path):
    text = made_page(tmp_path)
    links = re.findall('href="#([^"]+)"', text)
    assert links == ["table-1", "gains", "exceptions", "statements", "figures", "figure-1"]
    assert all(f'id="{link}"' in text for link in links)


def test_wide_tables_scroll_in_the_page(tmp_path):
    tables = re.findall(r"(<div[^>]*>)?<table>", made_page(tmp_path))
    assert tables == ['<div class="scroll" tabindex="0">'] * 2
    assert ".scroll { overflow-x: auto;" in made_page(tmp_path)


def test_the_page_states_the_rule_of_its_verdicts(tmp_path):
    text = " ".join(made_page(tmp_path).split())
    assert "ten of the 100,000 sequences have more than a tenth of the sum" in text
    assert "5–95 % range" in text


def test_a_statement_that_the_numbers_do_not_decide_is_shown_so(tmp_path):
    found = re.findall("<em>(holds|does not hold|not decided)</em>", made_page(tmp_path))
    assert found == ["holds", "not decided"]
