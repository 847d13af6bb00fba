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
    names = {"sentences", "losses", "omegas", "structures", "behaviour", "implied_noise", "ablation", "damping"}
    assert explanation.keys() == names
    assert (tmp_path / "explain-model.png").exists()
    shown = CliRunner().invoke(app, ["export", str(path), "--format", "pseudo-code"])
    assert "(momentum)" in shown.stdout
    with pytest.raises(FileNotFoundError, match=r"`model` 'nowhere/m\.safetensors' is not there"):
        CliRunner().invoke(app, ["explain", "nowhere/m.safetensors"], catch_exceptions=False)


def test_the_command_line_shows_how_often_a_published_model_is_damped():
    arguments = ["explain", "gd++-1-uniform(0,5)", "--sequences", "512"]
    shown = CliRunner().invoke(app, arguments, catch_exceptions=False).stdout
    assert "Damping: ‖Σ‖/ρ of inputs, λ/κ of labels" in shown
    assert "largest divisor" in shown
    assert "Layer 1 is damped on none of 512 sequences." in shown
