"""What claims are made of, and the command that checks them. `test_batteries.py` checks the claims."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lintra.cli import app
from lintra.theory import Check, LineFit, convergence


def test_relations():
    assert Check("c", "s", 1.0, 1.05, 0.1).holds
    assert not Check("c", "s", 1.0, 1.2, 0.1).holds
    assert Check("c", "s", 1.0, 0.95, 0.1, "≤").holds
    assert not Check("c", "s", 1.2, 1.0, 0.1, "≤").holds
    assert not Check("c", "s", 0.8, 1.0, 0.1, "≥").holds
    assert not Check("c", "s", float("nan"), 0.0, 1.0).holds
    assert Check("c", "s", 1.0, 0.0, 0.1, misprint=True).expected


def test_a_slope_covers_the_truth_as_often_as_it_says():
    rng, x = np.random.default_rng(0), np.linspace(0, 1, 6)
    error = np.asarray([0.1, 0.2, 0.1, 0.3, 0.1, 0.2])
    slopes = [LineFit.fit(x, 2 * x + error * rng.normal(size=6), error).interval for _ in range(2000)]
    share = np.mean([low < 2.0 < high for low, high in slopes])
    assert abs(share - 0.95) < 4 * (0.05 * 0.95 / 2000) ** 0.5


def test_layers_needed_are_counted_without_loss_of_digits():
    assert convergence.num_layers(1.0 + 1e-3, 2) == 1
    assert convergence.num_layers(100.0, 1000) - convergence.num_layers(100.0, 500) == 1


def test_the_command_line_shows_one_claim_with_its_plot(tmp_path: Path):
    shown = CliRunner().invoke(app, ["theory", "theorem-5.1", "lemma-a.3", "--out", str(tmp_path), "--json"])
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.stdout)
    assert {"claim", "statement", "measured", "predicted", "tolerance", "holds"} <= set(rows[0])
    assert all(row["holds"] for row in rows)
    assert (tmp_path / "theorem-5.1.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"`claim` must be one of theorem-4\.1"):
        CliRunner().invoke(app, ["theory", "theorem-9"], catch_exceptions=False)
