"""The report on a zoo of untrained models: what it states is checked, not how good models are."""

import re

import pytest

from lintra import zoo
from lintra.report.report import _tails, write_report
from lintra.runtime.processes import ProcessExecutor


@pytest.mark.slow
def test_the_report_names_what_is_missing(small_zoo, tmp_path):
    with ProcessExecutor(2) as executor:
        page = write_report(zoo.Zoo(small_zoo), tmp_path, executor=executor, num_sequences=8192).read_text()
    assert "Missing models:" in page
    assert "full-7-uniform(0,5)" in page
    assert "Not measured, since" in page
    assert page.count("<figure") == 8
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert (tmp_path / "table1.csv").exists()


def test_the_report_states_tails_as_the_cards_do():
    cards = [{"worst": worst} for worst in (None, float("inf"), 1e53, 1001.0, 999.0, 0.5)]
    assert "4 of 6 models have a loss above 1,000" in _tails(cards)
    assert "2 of these are infinite" in _tails(cards)


def test_the_report_states_what_the_gate_counted():
    counted = {"gate_sequences": 10_000_000, "worst": 1.0}
    cards = [
        counted | {"safe": safe, "printed_safe": printed}
        for safe, printed in ((True, True), (True, False), (False, False))
    ]
    text = _tails(cards)
    assert text.startswith("of 3 models 2 are safe as used (damped) and 1 as printed")
    assert text.endswith("no explosion on 10,000,000 sequences: a rate below 3e-07 at a confidence of 95 %")
    assert _tails([*cards, {"worst": 1.0}]).endswith("; of 1 models this is not known")
