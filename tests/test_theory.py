"""Claims hold, and a claim that is broken on purpose is seen not to: a sign, an index, a factor, a power."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lintra import theory
from lintra.cli import app
from lintra.theory import Check, LineFit, convergence, implicit, noise_levels, optima, quadratic

TIMED = {"theorem-4.2", "more-heads", "theorem-5.2", "section-5.2", "one-layer", "gd++-floor", "bayes-floor"}


@pytest.mark.parametrize("claim", sorted(set(theory.CLAIMS) - TIMED))
def test_a_claim_holds(claim):
    found = theory.check_claims([claim])[claim].checks
    assert found
    assert [check for check in found if not check.expected] == []


@pytest.mark.slow
@pytest.mark.parametrize("claim", sorted(TIMED))
def test_a_claim_that_takes_longer_holds(claim):
    found = theory.check_claims([claim])[claim].checks
    assert [check for check in found if not check.expected] == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda: implicit.theorem_4_1(readout=1.0),
        lambda: implicit.lemma_4_3(sign=1.0),
        lambda: implicit.lemma_4_4(power=1),
        lambda: implicit.lemma_4_4(half=-1.0),
        lambda: implicit.equations_8_to_10(index="lhj,lhi->lij"),
        lambda: convergence.theorem_5_1(shrink=lambda e: convergence.spread(e) * Decimal("1.1")),
        lambda: convergence.lemma_a_2(error=0.5),
        lambda: convergence.lemma_a_3(third=0.3),
        lambda: convergence.lemma_a_3(limit=2.0),
        lambda: noise_levels.section_5_3(term="Σr²"),
        lambda: optima.known_noise(factor=1.2),
    ],
)
def test_a_broken_claim_is_seen(broken):
    assert not all(check.expected for check in broken().checks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        lambda: noise_levels.theorem_5_2(sign=1.0),
        lambda: noise_levels.theorem_5_2(power=-0.5),
        lambda: noise_levels.section_5_2(exponent=1.0),
        lambda: quadratic.theorem_4_2(power=-1.0),
        lambda: optima.one_layer(extra=0.0),
        lambda: optima.best_polynomial(factor=1.5),
        lambda: optima.more_heads(gain=0.01),
    ],
)
def test_a_broken_claim_that_takes_longer_is_seen(broken):
    assert not all(check.expected for check in broken().checks)


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
