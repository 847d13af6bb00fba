"""Appendix A.4, the proof of Theorem 5.1, run step by step: from the spread κ' of Σ' to an error of at most ε.

Layers without a gradient step transform inputs to `x' = M x` with `M = A Σ^(−½)`, so that `Σ' = M Σ Mᵀ = A Aᵀ`.
The last layer takes one gradient step on them. ν and µ are the largest and the least eigenvalue of Σ, ν' and µ'
those of Σ'.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lintra.models.gdpp import GDPlusPlus
from lintra.statistics.gram import GramStatistics
from lintra.theory.check import Check, ClaimResult
from lintra.theory.convergence import construction, random_context

_CLAIM = "appendix-a.4"
_CASES = ((5.0, 0.1), (50.0, 1e-2), (1000.0, 1e-2))  # κ and ε; κ' − 1 stays above 1e-8, far from rounding
_NUM_CONTEXTS = 20  # of each case
_DIM = 6
_ROUNDING = 1e-6  # of κ' − 1, relative
_EXACT = 1e-10
_BOUNDS = {
    "spread": "(κ' − 1) over ε/2κ",
    "norm": "‖(w*)'‖ over √ν/√µ' ‖w*‖",
    "step": "‖ŵ − (w*)'‖ over (κ' − 1) √ν/√µ' ‖w*‖",
    "query": "‖x'‖ of the query over √ν'/√µ ‖x‖",
    "error": "error over (κ' − 1) √κ √κ' ‖w*‖ ‖x‖",
    "commuting": "error over (κ' − 1) ‖w*‖ ‖x‖: without √κ √κ', since M is a polynomial in Σ",
    "goal": "error over ε ‖w*‖ ‖x‖",
}
_EQUALITIES = {
    "product": "Σ' = A Aᵀ, relative difference",
    "singular": "singular values of A are from √µ' to √ν', relative distance outside",
    "solution": "(w*)' = M^(−T) w* is the least squares solution on x', relative difference",
    "output": "⟨ŵ, x'⟩ is the prediction of the GD++ model, difference over ‖w*‖ ‖x‖",
}
_MISPRINTS = {
    "printed_product": ("M = A Aᵀ, relative difference (printed as M')", "="),
    "printed_step": ("‖ŵ − (w*)'‖ with ŵ = Σ y x / µ', over (κ' − 1) √ν/√µ' ‖w*‖", "≤"),
    "printed_middle": ("√ν ‖w*‖ ‖x'‖ over (κ' − 1) √κ √κ' ‖w*‖ ‖x‖", "≤"),
}


@dataclass(frozen=True)
class _Proof:
    """The quantities of the proof on one context, with inputs of shape (n, d)."""

    x: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    query: Float[np.ndarray, " d"]
    rates: Float[np.ndarray, "layers 2"]
    power: float
    step_inputs: str

    def ratios(self, epsilon: float) -> dict[str, float]:
        """Both sides of every line of the proof: a ratio for a bound, a relative difference for an equality."""
        x, y, query = self.x, self.y, self.query
        model = GDPlusPlus(self.rates[:, None] * len(x), len(x), x.shape[1])
        implicit = model.implicit(GramStatistics.from_data(x, y))
        M = np.asarray(implicit.M)[-2]  # after all layers but the last, which moves labels only
        sigma = x.T @ x
        values, vectors = np.linalg.eigh(sigma)
        mu, nu = values[0], values[-1]
        A = M @ (vectors * values**self.power) @ vectors.T  # M Σ^½
        moved, moved_query = x @ M.T, M @ query
        sigma_moved = moved.T @ moved
        mu_moved, nu_moved = np.linalg.eigvalsh(sigma_moved)[[0, -1]]
        kappa, kappa_moved = nu / mu, nu_moved / mu_moved
        best = np.linalg.lstsq(x, y, rcond=None)[0]
        best_moved = np.linalg.solve(M.T, best)
        step = y @ (moved if self.step_inputs == "x'" else x) / mu_moved
        w_norm, x_norm = np.linalg.norm(best), np.linalg.norm(query)
        step_bound = (kappa_moved - 1) * np.sqrt(nu / mu_moved) * w_norm
        error = abs(step @ moved_query - best @ query)
        error_bound = (kappa_moved - 1) * np.sqrt(kappa * kappa_moved) * w_norm * x_norm
        singular = np.linalg.svd(A, compute_uv=False)
        outside = max(singular[0] / np.sqrt(nu_moved), np.sqrt(mu_moved) / singular[-1]) - 1
        return {
            "spread": (kappa_moved - 1) / (epsilon / (2 * kappa)),
            "norm": np.linalg.norm(best_moved) / (np.sqrt(nu / mu_moved) * w_norm),
            "step": np.linalg.norm(step - best_moved) / step_bound,
            "query": np.linalg.norm(moved_query) / (np.sqrt(nu_moved / mu) * x_norm),
            "error": error / error_bound,
            "commuting": error / ((kappa_moved - 1) * w_norm * x_norm),
            "goal": error / (epsilon * w_norm * x_norm),
            "product": _difference(sigma_moved, A @ A.T),
            "singular": max(outside, 0.0),
            "solution": _difference(np.linalg.lstsq(moved, y, rcond=None)[0], best_moved),
            "output": abs(step @ moved_query - np.asarray(implicit.w)[-1] @ query) / (w_norm * x_norm),
            "printed_product": _difference(M, A @ A.T),
            "printed_step": np.linalg.norm(y @ x / mu_moved - best_moved) / step_bound,
            "printed_middle": np.sqrt(nu) * w_norm * np.linalg.norm(moved_query) / error_bound,
        }


def appendix_a_4(power: float = 0.5, step_inputs: str = "x'") -> ClaimResult:
    """Appendix A.4: with κ' ≤ 1 + ε/2κ after all layers but the last, the error is at most ε ‖x‖ ‖w*‖.

    Every line of the proof is checked on contexts with noise; `A = M Σ^power`, and the step is taken on `x'`.
    """
    rng, found = np.random.default_rng(4), []
    for kappa, epsilon in _CASES:
        rates = construction(kappa, _num_layers(kappa, epsilon))
        for _ in range(_NUM_CONTEXTS):
            between = rng.uniform(1 / kappa, 1.0, size=_DIM - 2)
            x, y = random_context(rng, np.concatenate([[1 / kappa], between, [1.0]]))
            proof = _Proof(x, y, rng.normal(size=_DIM), rates, power, step_inputs)
            found.append(proof.ratios(epsilon))
    worst = {name: float(max(ratios[name] for ratios in found)) for name in found[0]}
    least = {name: float(min(ratios[name] for ratios in found)) for name in _MISPRINTS}
    cases = f"worst of {len(found)} contexts, κ up to {_CASES[-1][0]:g}"
    checks = [
        Check(_CLAIM, f"{text}, {cases}", worst[name], 1.0, _ROUNDING, "≤") for name, text in _BOUNDS.items()
    ]
    checks += [Check(_CLAIM, text, worst[name], 0.0, _EXACT) for name, text in _EQUALITIES.items()]
    for name, (text, relation) in _MISPRINTS.items():
        predicted = 0.0 if relation == "=" else 1.0
        checks.append(
            Check(_CLAIM, f"{text}, at least", least[name], predicted, _ROUNDING, relation, misprint=True)
        )
    return ClaimResult(checks)


def _num_layers(kappa: float, epsilon: float) -> int:
    """Layers until κ' ≤ 1 + ε/2κ, and the gradient step."""
    low, high, layers = 1 / kappa, 1.0, 1
    while high / low - 1 > epsilon / (2 * kappa):
        rate = 1 / (3 * high)
        low, high = low * (1 - rate * low) ** 2, high * (1 - rate * high) ** 2
        layers += 1
    return layers


def _difference(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm(first - second) / np.linalg.norm(first))
