"""Damped models have bounded weights: the bound, and the largest weights that a search over the data finds."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lintra import zoo
from lintra.models.base import AbstractModel
from lintra.models.damping import Damping
from lintra.models.gdpp import GDPlusPlus
from lintra.statistics.gram import GramStatistics
from lintra.theory.check import Check, ClaimResult

MODELS = ("gd++-3-uniform(0,5)", "diag-4-uniform(0,5)", "full-3-choice(1,3)")
"""The models that `lintra theory` checks."""
_SCALES = np.geomspace(1e-3, 1e6, 181)  # units of labels among which the smallest bound is taken
_STEPS, _STARTS = 200, 32


def weight_bound(model: AbstractModel, *, label_share: float = 1.0) -> float:
    """The largest ‖w‖ of a damped model, for any data.

    Let H = G/r be the Gram matrix that a layer reads. It is positive semidefinite, with ‖Σ_H‖_F ≤ ρ and λ_H ≤ κ.
    The norm of such a matrix is at most the sum of the norms of its diagonal blocks, so ‖H‖ ≤ ρ + κ and
    ‖T‖ ≤ 1 + (ρ + κ) Σₖ ‖Pₖ‖ ‖Qₖ‖. As w is a part of a row of C = T_L ⋯ T_1, ‖w‖ is at most the product of these
    numbers: exponential in depth, where the model as printed is a polynomial of degree 3^L. The same holds with
    labels in any unit s, which replaces κ by κ/s², w by w/s, and Pₖ and Qₖ by D⁻¹PₖD and DQₖD with
    D = diag(1, …, 1, s). The smallest bound over s is returned.

    Args:
        model: A damped model.
        label_share: Multiplies κ. With less than one the bound is not true.

    Raises:
        ValueError: If the model is not damped.
    """
    if model.damping is None:
        raise ValueError("`model` must be damped: the weights of a model as printed have no bound.")
    P, Q = model.matrices()
    rho, kappa = np.asarray(model.damping.rho), label_share * np.asarray(model.damping.kappa)
    bounds = []
    for scale in _SCALES:
        d = np.append(np.ones(model.dim), scale)
        p_norms = np.linalg.norm(P / d[:, None] * d, ord=2, axis=(-2, -1))
        q_norms = np.linalg.norm(Q * d[:, None] * d, ord=2, axis=(-2, -1))
        steps = (rho + kappa / scale**2) * np.sum(p_norms * q_norms, axis=1)
        bounds.append(np.log(scale) + np.sum(np.log1p(steps)))
    return float(np.exp(np.min(bounds)))


def largest_weights(model: AbstractModel, *, num_steps: int = _STEPS, num_starts: int = _STARTS) -> float:
    """The largest ‖w‖ that gradient ascent on the data finds, from contexts of several sizes."""
    n, d = model.num_examples, model.dim
    key = jax.random.key(24)
    scales = np.geomspace(0.1, 30.0, num_starts)[:, None, None]
    tokens = scales * np.asarray(jax.random.normal(key, (num_starts, n, d + 1)))
    return float(_ascend(model, jnp.asarray(tokens), num_steps).max())


@partial(jax.jit, static_argnums=2)
def _ascend(model: AbstractModel, tokens: Float[Array, "starts n e"], num_steps: int) -> Float[Array, " starts"]:
    """Largest norms on the way; steps along the gradient are a fraction of each context's length, 5 % at first."""

    def log_norm(tokens: Float[Array, "n e"]) -> Float[Array, ""]:
        weights = model.weights(GramStatistics(tokens.T @ tokens, jnp.asarray(tokens.shape[0])))
        return 0.5 * jnp.log(jnp.sum(weights**2) + 1e-300)

    def step(state: tuple[Array, Array], fraction: Array) -> tuple[tuple[Array, Array], None]:
        tokens, best = state
        values, gradients = jax.vmap(jax.value_and_grad(log_norm))(tokens)
        lengths = jnp.sqrt(jnp.sum(gradients**2, axis=(1, 2), keepdims=True))
        sizes = jnp.sqrt(jnp.sum(tokens**2, axis=(1, 2), keepdims=True))
        moved = tokens + fraction * sizes * gradients / jnp.maximum(lengths, 1e-300)
        return (moved, jnp.maximum(best, values)), None

    start = tokens, jnp.full(tokens.shape[0], -jnp.inf, tokens.dtype)
    return jnp.exp(jax.lax.scan(step, start, 0.05 * jnp.minimum(1, jnp.linspace(3, 0, num_steps)) ** 2)[0][1])


def damped_weights(label_share: float = 1.0) -> ClaimResult:
    """The weights of damped models have a bound that is exponential in depth, for any data."""
    checks = []
    for name in MODELS:
        model = zoo.load(name).with_damping()
        bound, found = weight_bound(model, label_share=label_share), largest_weights(model)
        statement = f"largest ‖w‖ that gradient ascent on the data finds, {name}, against the bound"
        checks.append(Check("damping", statement, found, bound, 0.0, "≤"))
    # One layer of one input reaches ω √(ρκ): the bound is tight to a factor of three.
    one = _one_input(omega=0.3, rho=4.0, kappa=9.0)
    found, bound = largest_weights(one), weight_bound(one, label_share=label_share)
    checks.append(Check("damping", "largest ‖w‖ of one layer on one input", found, 0.3 * 6.0, 1e-3))
    checks.append(Check("damping", "the same against the bound", found, bound, 0.0, "≤"))
    return ClaimResult(checks)


def _one_input(omega: float, rho: float, kappa: float) -> AbstractModel:
    return GDPlusPlus(np.asarray([[[0.0, -omega]]]), 1, 1).with_damping(
        Damping(np.asarray([rho]), np.asarray([kappa]))
    )
