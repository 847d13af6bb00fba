"""Claims hold, and a claim that is broken on purpose is seen not to: a sign, an index, a factor, a power."""

from decimal import Decimal

import pytest

from lintra import theory
from lintra.theory import convergence, implicit, noise_levels, optima, quadratic

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
