"""§4: every layer keeps a linear model of its input, Theorem 4.1, by the recursion of Lemmas 4.3, 4.4 and A.1.

Everything here is written token by token in NumPy, without the Gram recursion that lintra runs on.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from lintra.models import tokens
from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.families import FAMILIES
from lintra.statistics.gram import GramStatistics
from lintra.theory.check import Check, ClaimResult

_DIM, _CONTEXT, _LAYERS = 4, 7, 4
_EXACT = 1e-11  # relative, for identities
_SEEN = 1e-3  # by which a wrong formula must be off to be called wrong

Context = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Inputs, labels and a query."""


def small_context(number: int = 0) -> Context:
    """A small context with noise."""
    rng = np.random.default_rng(number)
    x, query = rng.normal(size=(_CONTEXT, _DIM)), rng.normal(size=_DIM)
    return x, x @ rng.normal(size=_DIM) + 0.5 * rng.normal(size=_CONTEXT), query


def models(*families: str) -> Iterator[tuple[str, AbstractModel]]:
    """Random models of these families with one to three heads, by what they are called."""
    for family in families:
        for heads in (1, 2, 3):
            key = jax.random.fold_in(jax.random.key(3), heads)
            settings = {"dim": _DIM, "num_examples": _CONTEXT, "num_heads": heads, "scale": 0.25}
            yield f"{family} with {heads} heads", FAMILIES[family].random(_LAYERS, **settings, key=key)


def history(model: AbstractModel, data: Context) -> list[np.ndarray]:
    """All tokens after every layer, by Eq. (3) as printed."""
    return [np.asarray(seen) for seen in tokens.forward(*map(jnp.asarray, (*model.matrices(), *data)))]


def theorem_4_1(readout: float = -1.0) -> ClaimResult:
    """Theorem 4.1: tokens after every layer are linear in the input, by M, u, w and a."""
    x, y, query = small_context()
    stats, checks = GramStatistics.from_data(x, y), []
    for name, model in models("full", "diag", "gd++"):
        implicit_map, error = model.implicit(stats), 0.0
        for layer, seen in enumerate(history(model, (x, y, query))):
            M, u, w, a = (
                np.asarray(part)[layer]
                for part in (implicit_map.M, implicit_map.u, implicit_map.w, implicit_map.a)
            )
            inputs = np.vstack([x @ M.T + y[:, None] * u, M @ query])
            labels = np.append(a * y - x @ w, readout * w @ query)
            error = max(error, _relative_difference(np.column_stack([inputs, labels]), seen))
        checks.append(Check("theorem-4.1", f"tokens follow (M, u, w, a), {name}", error, 0.0, _EXACT))
    return ClaimResult(checks)


def lemma_4_3(sign: float = -1.0) -> ClaimResult:
    """Lemma 4.3 with `M ← (I + A) M − b wᵀ`; the paper prints a plus."""
    x, y, query = small_context()
    stats, checks = GramStatistics.from_data(x, y), []
    for name, model in models("full", "diag", "gd++"):
        implicit_map = model.implicit(stats)
        expected = [np.asarray(part) for part in (implicit_map.M, implicit_map.u, implicit_map.w, implicit_map.a)]
        for used, misprint in ((sign, False), (-sign, True)):
            if misprint and name.startswith("gd++"):
                continue  # b = 0: the sign cannot be told
            computed = lemma_4_3_recursion(model, (x, y, query), used)
            error = max(_relative_difference(part, whole) for part, whole in zip(computed, expected, strict=True))
            form = f"M ← (I + A) M {'-+'[used > 0]} b wᵀ"
            checks.append(Check("lemma-4.3", f"{form}, {name}", error, 0.0, _EXACT, misprint=misprint))
    return ClaimResult(checks)


def lemma_4_3_recursion(model: AbstractModel, data: Context, sign: float) -> tuple[np.ndarray, ...]:
    """M, u, w and a after every layer, as Lemma 4.3 has them, with A, b, c and d from the tokens."""
    x, y, _ = data
    P, Q = model.matrices()
    states = [np.column_stack([x, y]), *(seen[:-1] for seen in history(model, data))]
    M, u, w, a = np.eye(_DIM), np.zeros(_DIM), np.zeros(_DIM), 1.0
    objects: list[tuple] = []
    for p, q, seen in zip(P, Q, states, strict=False):
        middle = np.sum(p @ (seen.T @ seen) @ q, axis=0)
        A, b, c, d = middle[:-1, :-1], middle[:-1, -1], middle[-1, :-1], middle[-1, -1]
        M, u, a, w = (
            (np.eye(_DIM) + A) @ M + sign * np.outer(b, w),
            (np.eye(_DIM) + A) @ u + a * b,
            (1 + d) * a + c @ u,
            (1 + d) * w - M.T @ c,
        )
        objects.append((M, u, w, a))
    return tuple(np.asarray(part) for part in zip(*objects, strict=True))


def lemma_4_4(power: int = 0, half: float = -0.5) -> ClaimResult:
    """Lemmas 4.4 and A.1: the momentum form of DIAG, with `M + u w*ᵀ` where the paper prints `M + a u w*ᵀ`."""
    x, y, _ = small_context(1)
    stats, checks = GramStatistics.from_data(x, y), []
    for name, model in models("diag"):
        assert isinstance(model, Diagonal)
        omega, implicit_map = np.asarray(model.omega) / _CONTEXT, model.implicit(stats)
        M, u, w, a = (
            np.asarray(part) for part in (implicit_map.M, implicit_map.u, implicit_map.w, implicit_map.a)
        )
        start = (np.eye(_DIM), np.zeros(_DIM), np.zeros(_DIM), 1.0)
        before = [start, *zip(M, u, w, a, strict=True)][:-1]
        for used, misprint in ((power, False), (1 - power, True)):
            error = attention = 0.0
            for layer, state in enumerate(before):
                found_u, found_w, alpha = momentum_step(omega[layer], state, x, y, used)
                error = max(
                    error, _relative_difference(found_u, u[layer]), _relative_difference(found_w, w[layer])
                )
                inputs, labels = x @ state[0].T + y[:, None] * state[1], state[3] * y - x @ state[2]
                attention = max(attention, _relative_difference(alpha, labels @ inputs))
            form = "M + a u w*ᵀ" if used else "M + u w*ᵀ"
            checks += [
                Check("lemma-a.1", f"momentum form with {form}, {name}", error, 0.0, _EXACT, misprint=misprint),
                Check("lemma-a.1", f"αˡ with {form}, {name}", attention, 0.0, _EXACT, misprint=misprint),
            ]
    checks += [_gradient(x, y, half), _gradient(x, y, 1.0, misprint=True)]
    return ClaimResult(checks)


def momentum_step(
    omega: np.ndarray, state: tuple, x: np.ndarray, y: np.ndarray, power: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One layer of Lemma A.1: the new u and w, and αˡ, with `M + aᵖ u w*ᵀ`."""
    M, u, w, a = state
    sigma, best = x.T @ x, np.linalg.lstsq(x, y, rcond=None)[0]
    rho = float(np.sum((y - x @ best) ** 2))
    inputs, labels = x @ M.T + y[:, None] * u, a * y - x @ w
    bent = M + a**power * np.outer(u, best)
    pull = sigma @ (a * best - w)
    (xx, xy), (yx, yy) = omega
    new_u = (1 + xy * a**2 * rho) * u + xx * inputs.T @ inputs @ u + a * xy * bent @ pull
    new_w = (1 + yy * labels @ labels) * w - yx * M.T @ bent @ pull - a * rho * yx * M.T @ u
    return new_u, new_w, bent @ pull + a * rho * u


def _gradient(x: np.ndarray, y: np.ndarray, factor: float, *, misprint: bool = False) -> Check:
    """`Σ (a w* − w)` against the slope of `f(w) = Σᵢ (a yᵢ − ⟨w, xᵢ⟩)²`."""
    a, w = 0.7, np.arange(1.0, _DIM + 1)
    gradient = np.asarray(jax.grad(lambda w: ((a * y - x @ w) ** 2).sum())(w))
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    error = _relative_difference(factor * gradient, x.T @ x @ (a * best - w))
    return Check("lemma-4.4", f"Σ(a w* − w) is {factor:g} ∇f", error, 0.0, _EXACT, misprint=misprint)


def equations_8_to_10(index: str = "lhi,lhj->lij") -> ClaimResult:
    """Eqs. (8)–(10): four ω say all; one head ties them together, and more heads do not."""
    x, y, query = small_context(2)
    checks = []
    for name, model in models("diag"):
        assert isinstance(model, Diagonal)
        P, Q = model.matrices()
        ends = [np.stack([matrix[..., 0, 0], matrix[..., -1, -1]], axis=-1) for matrix in (P, Q)]
        omega = np.einsum(index, *ends)
        error = _relative_difference(diagonal_layers(omega, x, y, query), history(model, (x, y, query))[-1])
        checks.append(Check("eq-10", f"four ω a layer do what P and Q do, {name}", error, 0.0, _EXACT))
        tie = np.abs(omega[:, 0, 0] * omega[:, 1, 1] - omega[:, 0, 1] * omega[:, 1, 0]).max() / (omega**2).max()
        if model.num_heads == 1:
            checks.append(Check("eq-9", f"ω_xx ω_yy = ω_xy ω_yx, {name}", float(tie), 0.0, _EXACT))
        else:
            checks.append(Check("eq-9", f"ω_xx ω_yy ≠ ω_xy ω_yx, {name}", float(tie), _SEEN, 0.0, "≥"))
    return ClaimResult(checks)


def diagonal_layers(omega: np.ndarray, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """All tokens after the last layer, by Eq. (10) as printed."""
    inputs, labels = np.vstack([x, query]), np.append(y, 0.0)
    for (xx, xy), (yx, yy) in omega:
        sigma, alpha, square = inputs[:-1].T @ inputs[:-1], labels[:-1] @ inputs[:-1], labels[:-1] @ labels[:-1]
        inputs, labels = (
            inputs + xx * inputs @ sigma + xy * np.outer(labels, alpha),
            labels + yx * inputs @ alpha + yy * labels * square,
        )
    return np.column_stack([inputs, labels])


def _relative_difference(computed: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, as a share of the largest number."""
    return float(np.abs(computed - expected).max() / max(np.abs(expected).max(), 1e-300))
