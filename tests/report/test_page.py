from lintra.report.page import number


def test_numbers_are_printed_as_the_paper_prints_them():
    assert number(0.0471) == "0.0471"
    assert number(0.896) == "0.896"
    assert number(1.14e-7) == "1.14e-07"
