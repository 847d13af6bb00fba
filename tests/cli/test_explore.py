import sys

import pytest

from explorer_helpers import published_page
from lintra.cli import main


def explore(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["lintra", "explore", "--no-open", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_info:
        main()
    return exit_info.value.code


def test_the_command_writes_the_page_and_says_where(tmp_path, monkeypatch, capsys):
    assert explore(monkeypatch, "--out", tmp_path / "deep" / "page.html") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "deep" / "page.html")
    assert (tmp_path / "deep" / "page.html").read_text(encoding="utf-8") == published_page()


def test_without_a_place_it_writes_into_the_cache_and_opens_it(tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setenv("LINTRA_CACHE", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    monkeypatch.setattr(sys, "argv", ["lintra", "explore"])
    with pytest.raises(SystemExit):
        main()
    path = tmp_path / "lintra" / "explorer.html"
    assert capsys.readouterr().out.strip() == str(path)
    assert opened == [path.as_uri()]


def test_bad_input_of_the_command_gets_a_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    for arguments, part in (
        (("--out", tmp_path), "is a folder"),
        (("--out", tmp_path / "file" / "page.html"), "cannot be used"),
        (("--zoo", tmp_path / "none.safetensors"), "cannot be used"),
        (("--zoo", tmp_path / "file"), "not an intact safetensors file"),
    ):
        assert explore(monkeypatch, *arguments) == 2
        assert part in capsys.readouterr().err
