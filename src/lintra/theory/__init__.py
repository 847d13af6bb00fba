"""Every claim of the paper as a check that runs, one function a claim.

Each function has arguments for what could be wrong in it, a sign, a factor or an index, so that tests can break
it and see the check fail.
"""

from collections.abc import Callable, Iterable

from lintra import arguments
from lintra.kernel.precision import in_64_bits
from lintra.theory.appendix_a4 import appendix_a_4
from lintra.theory.check import Check, ClaimResult, LineFit
from lintra.theory.convergence import lemma_a_2, lemma_a_3, theorem_5_1
from lintra.theory.damped import damped_weights
from lintra.theory.implicit import equations_8_to_10, lemma_4_3, lemma_4_4, theorem_4_1
from lintra.theory.noise_levels import section_5_2, section_5_3, theorem_5_2
from lintra.theory.optima import best_polynomial, known_noise, more_heads, one_layer, unknown_noise
from lintra.theory.quadratic import theorem_4_2
from lintra.theory.trained import equation_6, equation_8, section_6

CLAIMS: dict[str, Callable[[], ClaimResult]] = {
    "theorem-4.1": theorem_4_1,
    "theorem-4.2": theorem_4_2,
    "lemma-4.3": lemma_4_3,
    "lemma-4.4": lemma_4_4,
    "eqs-8-10": equations_8_to_10,
    "equation-8": equation_8,
    "more-heads": more_heads,
    "equation-6": equation_6,
    "theorem-5.1": theorem_5_1,
    "lemma-a.2": lemma_a_2,
    "lemma-a.3": lemma_a_3,
    "appendix-a.4": appendix_a_4,
    "section-5.2": section_5_2,
    "theorem-5.2": theorem_5_2,
    "section-5.3": section_5_3,
    "section-6": section_6,
    "one-layer": one_layer,
    "gd++-floor": best_polynomial,
    "oracle": known_noise,
    "bayes-floor": unknown_noise,
    "damping": damped_weights,
}
"""What can be checked, by name, in the paper's order."""


def statement(claim: str) -> str:
    """What a claim says, in a sentence."""
    return " ".join((CLAIMS[claim].__doc__ or "").split())


def check_claims(claims: Iterable[str] = tuple(CLAIMS)) -> dict[str, ClaimResult]:
    """Check these claims.

    >>> all(check.expected for check in check_claims(["lemma-a.3"])["lemma-a.3"].checks)
    True
    """
    names = [arguments.one_of("claim", claim, tuple(CLAIMS)) for claim in claims]
    with in_64_bits():
        return {claim: CLAIMS[claim]() for claim in names}


__all__ = ["CLAIMS", "Check", "ClaimResult", "LineFit", "check_claims", "statement"]
