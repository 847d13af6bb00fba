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
    cards = [{"worst": worst} for worst in (None, 1e53, 1001.0, 999.0, 0.5)]
    assert "3 of 5 models have a loss above 1,000" in _tails(cards)
    assert "1 of these are infinite" in _tails(cards)
