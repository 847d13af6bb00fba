import json

import pytest
from typer.testing import CliRunner

import lintra
from anatomy_helpers import small
from lintra.cli import app


def test_the_command_line_explains_and_exports_files(tmp_path):
    path = tmp_path / "model.safetensors"
    lintra.save(small("diag"), path, noise="uniform(0,2)")
    shown = CliRunner().invoke(
        app, ["explain", str(path), "--sequences", "8192", "--json", "--out", str(tmp_path)]
    )
    assert shown.exit_code == 0, shown.output
    explanation = json.loads(shown.stdout)
    assert len(explanation["omegas"]) == 3
    assert explanation.keys() == {"sentences", "omegas", "structures", "behaviour", "implied_noise", "ablation"}
    assert (tmp_path / "explain-model.png").exists()
    shown = CliRunner().invoke(app, ["export", str(path), "--format", "pseudo-code"])
    assert "(momentum)" in shown.stdout
    with pytest.raises(FileNotFoundError, match=r"`model` 'nowhere/m\.safetensors' is not there"):
        CliRunner().invoke(app, ["explain", "nowhere/m.safetensors"], catch_exceptions=False)
