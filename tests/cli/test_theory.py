import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lintra.cli import app


def test_the_command_line_shows_one_claim_with_its_plot(tmp_path: Path):
    shown = CliRunner().invoke(app, ["theory", "theorem-5.1", "lemma-a.3", "--out", str(tmp_path), "--json"])
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.stdout)
    assert {"claim", "statement", "measured", "predicted", "tolerance", "holds"} <= set(rows[0])
    assert all(row["holds"] for row in rows)
    assert (tmp_path / "theorem-5.1.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"`claim` must be one of theorem-4\.1"):
        CliRunner().invoke(app, ["theory", "theorem-9"], catch_exceptions=False)
