"""Theorem 5.1 with Lemmas A.2 and A.3: GD++ solves least squares in O(log κ + log log 1/ε) layers.

All layers but the last shrink the spread of the eigenvalues by `s ← s (1 − γs)²`, γ times the largest being one
third, and the last one takes a gradient step. With κ = 1 + e the spread after a layer is exactly
`e ← e² (e + ¾) / (1 + 3e/2)²`, and the error of the solution, as a share of its length, is the last e.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np

from lintra.display import Curve, Plot
from lintra.models.gdpp import GDPlusPlus
from lintra.statistics.gram import GramStatistics
from lintra.theory.check import Check, ClaimResult, LineFit

_KAPPAS = tuple(float(kappa) for kappa in np.logspace(1, 8, 29))
_DIGITS = tuple(round(digits) for digits in np.geomspace(2, 1000, 25))  # of 1/ε
_EXACT = 1e-10


def spread(excess: Decimal) -> Decimal:
    """κ − 1 after one layer, from κ − 1 before it."""
    return excess**2 * (excess + Decimal("0.75")) / (1 + Decimal("1.5") * excess) ** 2


def num_layers(kappa: float, digits: float, shrink: Callable[[Decimal], Decimal] = spread) -> int:
    """How many layers the construction needs for an error of 10^−digits."""
    excess, goal, layers = Decimal(kappa) - 1, Decimal(10) ** Decimal(-digits), 1
    while excess > goal:
        excess, layers = shrink(excess), layers + 1
    return layers


def construction(kappa: float, num_layers: int, top: float = 1.0) -> np.ndarray:
    """`(ω_xx, ω_yx)` of every layer for eigenvalues of Σ from top/κ to top."""
    low, high, rates = top / kappa, top, []
    for _ in range(num_layers - 1):
        rate = 1 / (3 * high)
        rates.append((-rate, 0.0))
        low, high = low * (1 - rate * low) ** 2, high * (1 - rate * high) ** 2
    return np.asarray([*rates, (0.0, -1 / low)])


def theorem_5_1(shrink: Callable[[Decimal], Decimal] = spread) -> ClaimResult:
    """Theorem 5.1: layers against κ and ε, beside gradient descent, conjugate gradients and Newton–Schulz."""
    with localcontext() as arithmetic:
        arithmetic.prec = 60  # the recursion loses no digits, and the exponent has no end
        by_kappa = [num_layers(kappa, 6, shrink) for kappa in _KAPPAS]
        by_digits = [num_layers(100.0, digits, shrink) for digits in _DIGITS]
    in_kappa = LineFit.fit(np.log(_KAPPAS), by_kappa)
    in_digits = LineFit.fit(np.log2(_DIGITS), by_digits)
    checks = [
        Check(
            "theorem-5.1",
            f"layers against ln κ from 10 to 1e8, slope {in_kappa}",
            in_kappa.value,
            1 / math.log(9 / 4),
            3 * in_kappa.standard_error,
        ),
        Check(
            "theorem-5.1",
            f"layers against log₂ log 1/ε from 1e-2 to 1e-1000, slope {in_digits}",
            in_digits.value,
            1.0,
            3 * in_digits.standard_error,
        ),
        _on_a_context(shrink),
        _in_many_digits(shrink),
    ]
    others = rivals(6)
    against = [Curve("GD++", _KAPPAS, by_kappa)]
    against += [Curve(name, _KAPPAS, [steps(kappa) for kappa in _KAPPAS]) for name, steps in others.items()]
    digits = [Curve("GD++", _DIGITS, by_digits)]
    digits += [
        Curve(name, _DIGITS, [rivals(count)[name](100.0) for count in _DIGITS])
        for name in others
        if name != "gradient descent"
    ]
    newton = LineFit.fit(np.log(_KAPPAS), [others["Newton–Schulz"](kappa) for kappa in _KAPPAS])
    statement = f"Newton–Schulz needs more a factor of κ: slope {newton} against GD++'s 1/ln(9/4)"
    checks.append(Check("theorem-5.1", statement, newton.value, 1 / math.log(2), 3 * newton.standard_error))
    plots = [
        Plot("Layers or steps for an error of 1e-6", "Condition number κ", "Layers", against),
        Plot("Layers or steps at κ = 100", "Digits, log₁₀ 1/ε", "Layers", digits),
    ]
    return ClaimResult(checks, plots)


def rivals(digits: float) -> dict[str, Callable[[float], float]]:
    """Steps that other methods need at worst for an error of 10^−digits, from κ."""
    goal = digits * math.log(10)

    def newton_schulz(kappa: float) -> float:
        """`X ← X (2 − A X)` squares the error, which begins at (κ − 1)/(κ + 1)."""
        return max(math.ceil(math.log2(goal / -math.log1p(-2 / (kappa + 1)))), 0)

    return {
        "Newton–Schulz": newton_schulz,
        "conjugate gradients": lambda k: math.ceil((goal + math.log(2)) / math.log((k**0.5 + 1) / (k**0.5 - 1))),
        "gradient descent": lambda k: math.ceil(goal / math.log((k + 1) / (k - 1))),
    }


def lemma_a_2(error: float = 1.0) -> ClaimResult:
    """Lemma A.2: with eigenvalues of Σ from 1 to 1 + ε one gradient step is off by at most ε."""
    rng, checks = np.random.default_rng(0), []
    for epsilon in (0.1, 1e-3):
        worst = 0.0
        for _ in range(50):
            x, y = random_context(rng, np.linspace(1.0, 1.0 + epsilon, 6))
            best = np.linalg.lstsq(x, y, rcond=None)[0]
            worst = max(worst, float(np.linalg.norm(y @ x - best) / np.linalg.norm(best)))
        statement = f"error of one step, the worst of 50 contexts with ε = {epsilon:g}"
        checks.append(Check("lemma-a.2", statement, worst, error * epsilon, 1e-12, "≤"))
    return ClaimResult(checks)


def lemma_a_3(third: float = 1 / 3, limit: float = 0.75) -> ClaimResult:
    """Lemma A.3: the spread shrinks by a constant factor, then to ¾ of its square (2 is printed, as a bound)."""
    kappas = np.concatenate([np.linspace(1.1, 2, 50), np.logspace(0.4, 8, 50)])
    factor = max(_shrunk(kappa, third) / kappa for kappa in kappas)
    small = np.logspace(-6, -1, 30)
    squares = [(_shrunk(1 + e, third) - 1) / e**2 for e in small[small > 1e-4]]
    exact = max(abs(float(spread(Decimal(k - 1))) / (_shrunk(k, third) - 1) - 1) for k in kappas)
    least = (4 / 9) / (1 - 1 / 3.3) ** 2
    return ClaimResult(
        [
            Check("lemma-a.3", "largest κ'/κ for κ from 1.1 to 1e8", float(factor), least, 1e-9),
            Check("lemma-a.3", "κ'/κ for large κ", _shrunk(1e8, third) / 1e8, 4 / 9, 1e-6),
            Check(
                "lemma-a.3",
                "(κ' − 1)/(κ − 1)² for κ up to 1.1",
                max(squares),
                2.0,
                0.0,
                "≤",
            ),
            Check("lemma-a.3", "(κ' − 1)/(κ − 1)² for κ near 1", squares[0], limit, 1e-3),
            Check("lemma-a.3", "e' = e²(e + ¾)/(1 + 3e/2)² is exact", exact, 0.0, 1e-6),
        ]
    )


def _shrunk(kappa: float, third: float) -> float:
    """The spread after a layer, from the largest and smallest of many eigenvalues."""
    values = np.concatenate([[1 / kappa], np.linspace(1 / kappa, 1.0, 1001), [1.0]])
    moved = values * (1 - third * values) ** 2
    return float(moved.max() / moved.min())


def _on_a_context(shrink: Callable[[Decimal], Decimal]) -> Check:
    """The construction as a model, on a context with κ = 50 and noise, against the recursion of the spread."""
    rng, kappa, layers = np.random.default_rng(1), 50.0, 7
    x, y = random_context(rng, np.concatenate([[1 / kappa], rng.uniform(1 / kappa, 1, size=4), [1.0]]))
    rates = construction(kappa, layers)
    model = GDPlusPlus(rates[:, None] * len(x), len(x), x.shape[1])
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    vectors = np.linalg.eigh(x.T @ x)[1]
    error = vectors.T @ (np.asarray(model.weights(GramStatistics.from_data(x, y))) - best)
    share = np.abs(error / (vectors.T @ best)).max()
    excess = Decimal(kappa) - 1
    for _ in range(layers - 1):
        excess = shrink(excess)
    statement = f"error of a {layers}-layer GD++ model at κ = 50 over the last spread"
    return Check("theorem-5.1", statement, float(share) / float(excess), 1.0, _EXACT)


def _in_many_digits(shrink: Callable[[Decimal], Decimal]) -> Check:
    """The polynomial itself, in 1,200 digits, where the error is 1e-500."""
    with localcontext() as arithmetic:
        arithmetic.prec = 1200
        kappa, layers = Decimal(100), num_layers(100.0, 500, shrink)
        third, high = Decimal(1) / 3, Decimal(1)
        values = [1 / kappa, Decimal("0.3"), Decimal("0.77"), high]
        excess = kappa - 1
        for _ in range(layers - 1):
            rate = third / max(values)
            values = [value * (1 - rate * value) ** 2 for value in values]
            excess = shrink(excess)
        error = max(abs(1 - value / min(values)) for value in values)
        share = float(error / excess)
    return Check(
        "theorem-5.1", f"the same in 1,200 digits, {layers} layers, error below 1e-500", share, 1.0, 1e-12
    )


def random_context(rng: np.random.Generator, eigenvalues: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A noisy context whose Σ has these eigenvalues."""
    dim = len(eigenvalues)
    left = np.linalg.qr(rng.normal(size=(3 * dim, dim)))[0]
    right = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    x = left * np.sqrt(eigenvalues) @ right
    return x, x @ rng.normal(size=dim) + 0.3 * rng.normal(size=len(x))
