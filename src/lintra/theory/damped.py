"""Damped models have bounded weights: the bound, and the largest weights that a search over the data finds."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lintra import zoo
from lintra.arguments import KeyLike, random_key
from lintra.models.base import AbstractModel
from lintra.models.damping import Damping
from lintra.models.gdpp import GDPlusPlus
from lintra.statistics.gram import GramStatistics
from lintra.theory.check import Check, ClaimResult

MODELS = ("gd++-3-uniform(0,5)", "diag-4-uniform(0,5)", "full-3-choice(1,3)")
"""The models that `lintra theory` checks."""
_STEPS, _STARTS = 200, 32


def weight_bound(model: AbstractModel, *, share: float = 1.0) -> float:
    """The largest ‖w‖ of a damped model, for any data.

    Let H = G/r = [[S, a], [aᵀ, l]] be the Gram matrix that a layer reads. It is positive semidefinite with ‖S‖ ≤ ρ
    and l ≤ κ, so that ‖a‖ ≤ √(ρκ). From these follow bounds N of the four blocks of T = I + Σₖ Pₖ H Qₖ, each from
    inputs or label to inputs or label. Block norms are submultiplicative: those of C = T_L ⋯ T_1 are at most the
    entries of the product N_L ⋯ N_1, and ‖w‖ is the norm of one block. So the bound is exponential in depth, where
    the model as printed is a polynomial of degree 3^L.

    GD++ is linear in the labels, which do not damp it. Its bound is for labels with ‖y‖ = 1:
    `‖w‖ ≤ ‖y‖ Σ_l |ω_yx| √ρ_l Π_{j<l} max(1, |1 + ω_xx ρ_j|) max(1, |1 + ω_yx ρ_j|)`.

    Args:
        model: A damped model.
        share: Multiplies ρ and κ. With less than one the bound is not true. Default: 1.

    Returns:
        The bound, or infinity if labels damp some layers and not others. For GD++ it is for labels of norm one.

    Raises:
        ValueError: If the model is not damped.
    """
    if model.damping is None:
        raise ValueError("`model` must be damped: the weights of a model as printed have no bound.")
    rho, kappa = share * np.asarray(model.damping.rho), share * np.asarray(model.damping.kappa)
    P, Q = model.matrices()
    if is_linear(model):
        # In GD++ only P_xx Q_xx = ω_xx I and P_yy Q_xx = ω_yx I are not zero.
        xx = np.sum(P[:, :, 0, 0] * Q[:, :, 0, 0], axis=1)
        yx = np.sum(P[:, :, -1, -1] * Q[:, :, 0, 0], axis=1)
        growth = np.maximum(1, np.abs(1 + xx * rho)) * np.maximum(1, np.abs(1 + yx * rho))
        before = np.concatenate([[1.0], np.cumprod(growth)[:-1]])
        return float(np.sum(np.abs(yx) * np.sqrt(rho) * before))
    if not np.isfinite(kappa).all():
        return float("inf")
    product = np.eye(2)
    for layer in range(model.num_layers):
        product = _block_norms(P[layer], Q[layer], rho[layer], kappa[layer]) @ product
    return float(product[1, 0])


def is_linear(model: AbstractModel) -> bool:
    """Whether the weights of a model are linear in the labels, as those of GD++ are, whatever family it is of.

    A model that labels damp is not.
    """
    if model.damping is not None and np.isfinite(model.damping.kappa).any():
        return False
    P, Q = model.matrices()
    off = [P[..., :-1, -1], P[..., -1, :-1], Q[..., :-1, -1], Q[..., -1, :]]
    eye = np.eye(model.dim)
    for matrix in (P, Q):
        off.append(matrix[..., :-1, :-1] - matrix[..., :1, :1] * eye)
    return not any(part.any() for part in off)


def _block_norms(
    P: Float[np.ndarray, "heads e e"], Q: Float[np.ndarray, "heads e e"], rho: float, kappa: float
) -> Float[np.ndarray, "2 2"]:
    """Bounds of the norms of T's blocks, `[[xx, xy], [yx, yy]]`, over all H with ‖S‖ ≤ ρ and l ≤ κ."""
    mixed = np.sqrt(rho * kappa)  # of a
    dim = P.shape[-1] - 1
    norms = np.zeros((2, 2))
    multiple_xx = multiple_yy = 0.0
    for p, q in zip(P, Q, strict=True):
        # From a block of H's rows (inputs or label) to T's rows, and from T's columns to H's columns.
        left = np.asarray([[_norm(p[:-1, :-1]), _norm(p[:-1, -1:])], [_norm(p[-1:, :-1]), abs(p[-1, -1])]])
        right = np.asarray([[_norm(q[:-1, :-1]), _norm(q[:-1, -1:])], [_norm(q[-1:, :-1]), abs(q[-1, -1])]])
        norms += left @ np.asarray([[rho, mixed], [mixed, kappa]]) @ right
        # The parts that are a multiple of S or of l are added with their signs below: S and l are not negative, so
        # that the norm of I + ω S is at most max(1, |1 + ω ρ|).
        a, f = np.trace(p[:-1, :-1]) / dim, np.trace(q[:-1, :-1]) / dim
        rest = _norm(p[:-1, :-1] - a * np.eye(dim)) * right[0, 0] + abs(a) * _norm(q[:-1, :-1] - f * np.eye(dim))
        norms[0, 0] += rho * (rest - left[0, 0] * right[0, 0])
        norms[1, 1] -= kappa * left[1, 1] * right[1, 1]
        multiple_xx += a * f
        multiple_yy += p[-1, -1] * q[-1, -1]
    identity = np.diag([max(1, abs(1 + multiple_xx * rho)), max(1, abs(1 + multiple_yy * kappa))])
    return np.maximum(norms, 0) + identity  # without what rounding leaves below zero


def _norm(matrix: Float[np.ndarray, "m n"]) -> float:
    return float(np.linalg.norm(matrix, ord=2))


def largest_weights(
    model: AbstractModel, *, num_steps: int = _STEPS, num_starts: int = _STARTS, key: KeyLike = 24
) -> float:
    """The largest ‖w‖ that gradient ascent on the data finds, from contexts of several sizes.

    Args:
        model: A damped model.
        num_steps: Number of steps. Default: 200.
        num_starts: Number of contexts that are improved. Default: 32.
        key: Randomness, a whole number or a key. Default: 24.

    Returns:
        The largest ‖w‖, or for a model that is linear in the labels the largest ‖w‖/‖y‖.
    """
    n, d = model.num_examples, model.dim
    scales = np.geomspace(0.1, 30.0, num_starts)[:, None, None]
    tokens = scales * np.asarray(jax.random.normal(random_key(key), (num_starts, n, d + 1)))
    return float(_ascend(model, jnp.asarray(tokens), num_steps, is_linear(model)).max())


@partial(jax.jit, static_argnums=(2, 3))
def _ascend(
    model: AbstractModel, tokens: Float[Array, "starts n e"], num_steps: int, is_relative: bool
) -> Float[Array, " starts"]:
    """Largest norms on the way; steps along the gradient are a fraction of each context's length, 5 % at first."""

    def log_norm(tokens: Float[Array, "n e"]) -> Float[Array, ""]:
        weights = model.weights(GramStatistics(tokens.T @ tokens, jnp.asarray(tokens.shape[0])))
        labels = jnp.sum(tokens[:, -1] ** 2) if is_relative else 1.0
        return 0.5 * (jnp.log(jnp.sum(weights**2) + 1e-300) - jnp.log(labels + 1e-300))

    def step(state: tuple[Array, Array], fraction: Array) -> tuple[tuple[Array, Array], None]:
        tokens, best = state
        values, gradients = jax.vmap(jax.value_and_grad(log_norm))(tokens)
        lengths = jnp.sqrt(jnp.sum(gradients**2, axis=(1, 2), keepdims=True))
        sizes = jnp.sqrt(jnp.sum(tokens**2, axis=(1, 2), keepdims=True))
        moved = tokens + fraction * sizes * gradients / jnp.maximum(lengths, 1e-300)
        return (moved, jnp.maximum(best, values)), None

    start = tokens, jnp.full(tokens.shape[0], -jnp.inf, tokens.dtype)
    return jnp.exp(jax.lax.scan(step, start, 0.05 * jnp.minimum(1, jnp.linspace(3, 0, num_steps)) ** 2)[0][1])


def damped_weights(share: float = 1.0) -> ClaimResult:
    """The weights of damped models have a bound that is exponential in depth, for any data."""
    checks = []
    for name in MODELS:
        model = zoo.load(name).with_damping()
        bound, found = weight_bound(model, share=share), largest_weights(model)
        norm = "‖w‖/‖y‖" if is_linear(model) else "‖w‖"
        statement = f"largest {norm} that gradient ascent on the data finds, {name}, against the bound"
        checks.append(Check("damping", statement, found, bound, 0.0, "≤"))
    # One layer of one input reaches ω √(ρκ), and with labels that do not damp ω √ρ ‖y‖: there the bound is tight.
    for kappa, predicted in ((9.0, 0.3 * 6.0), (np.inf, 0.3 * 2.0)):
        one = _one_input(omega=0.3, rho=4.0, kappa=kappa)
        found, bound = largest_weights(one), weight_bound(one, share=share)
        checks.append(
            Check("damping", f"largest weight of one layer on one input, κ = {kappa:g}", found, predicted, 1e-3)
        )
        checks.append(Check("damping", "the same against the bound", found, bound, 1e-12, "≤"))
    return ClaimResult(checks)


def _one_input(omega: float, rho: float, kappa: float) -> AbstractModel:
    """One layer on one input, `w = ω α/r`."""
    model = GDPlusPlus(np.asarray([[[0.0, -omega]]]), 1, 1)
    damping = Damping(np.asarray([rho]), np.asarray([kappa]))
    return model.with_damping(damping)
