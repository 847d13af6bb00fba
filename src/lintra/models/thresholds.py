"""Thresholds of damping, measured on sequences of the problem that a model was trained on."""

from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lintra import arguments
from lintra.arguments import KeyLike
from lintra.kernel.precision import in_64_bits
from lintra.models.damping import Damping, divisor, range_ratios, scale_context
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics

QUANTILE = 0.9999
"""Fraction of the sequences on which a layer is not damped."""


@runtime_checkable
class HasMatrices(Protocol):
    """What is needed of a model: the sizes of its contexts, and P and Q of its layers."""

    @property
    def dim(self) -> int:
        """Number of inputs."""
        ...

    @property
    def num_examples(self) -> int:
        """Number of examples in training."""
        ...

    def matrices(self) -> tuple[Float[np.ndarray, "layers heads e e"], Float[np.ndarray, "layers heads e e"]]:
        """P and Q as printed."""
        ...


def measure_damping(
    model: HasMatrices,
    problem: NoisyRegression | str,
    *,
    num_sequences: int = 65_536,
    quantile: float = QUANTILE,
    is_unit_blind: bool = False,
    key: KeyLike = 0,
) -> Damping:
    """Measure the range of a model's layers on sequences of its problem.

    t is a quantile of tr Σ⁰, and ρˡ of ‖Σˡ‖₄, layer by layer, with the earlier layers damped. κˡ is the same
    quantile of λˡ or, if that is larger, the λˡ at which the part of the step that λˡ multiplies has norm one. So
    labels do not damp a layer in which they matter little, and never damp GD++, which is linear in the labels.

    Args:
        model: The model; its own damping is not used.
        problem: The problem it was trained on, or its noise prior as text.
        num_sequences: Number of sequences. Default: 65,536.
        quantile: Fraction of the sequences that are inside of the range of each layer. Default: 0.9999.
        is_unit_blind: Whether the labels of each sequence are divided by their root mean square, as for a model
            inside of `UnitBlind`. Default: `False`.
        key: Randomness, a number or a key. Default: 0.

    Returns:
        Thresholds for `model.with_damping`.

    Raises:
        ValueError: If the model overflows on sequences of the problem, so that there is no range to measure.
    """
    if not isinstance(problem, NoisyRegression):
        problem = NoisyRegression(model.dim, model.num_examples, problem)
    num_sequences = arguments.whole_number("num_sequences", num_sequences)
    with in_64_bits():
        stats, _ = sample_statistics(problem, (num_sequences,), key=arguments.random_key(key))
        if is_unit_blind:
            stats = stats.divide_labels(stats.label_rms)
        trace = np.quantile(np.trace(np.asarray(stats.xx), axis1=1, axis2=2), quantile)
        # The norms of the first layer are of contexts that are scaled by their trace alone.
        first_rho = np.quantile(_sizes(_scaled(stats.gram, jnp.asarray([jnp.inf, jnp.inf, trace])))[0], quantile)
        gram = _scaled(stats.gram, jnp.asarray([first_rho, jnp.inf, trace]))
        rhos: list[float] = []
        kappas: list[float] = []
        for p, q in zip(*model.matrices(), strict=True):
            rho, labels = (float(np.quantile(sizes, quantile)) for sizes in _sizes(gram))
            rho = rho if rhos else float(first_rho)
            if not np.isfinite([rho, labels]).all():
                raise ValueError(
                    f"`model` overflows in layer {len(rhos)} on sequences of `problem`. Pass the problem of its "
                    "training."
                )
            rhos.append(rho)
            kappas.append(max(labels, _harmless_labels(p, q, rho, labels)))
            p, q = (jnp.asarray(matrix, gram.dtype) for matrix in (p, q))
            gram = _next_gram(p, q, gram, jnp.asarray([rho, kappas[-1], jnp.inf]))
        return Damping(np.asarray(rhos), np.asarray(kappas), trace)


@jax.jit
def _sizes(gram: Float[Array, "b e e"]) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
    """‖Σ‖₄ and λ of every sequence, which are the ratios to thresholds of one."""
    ratios = jax.vmap(range_ratios, (0, None))(gram, jnp.ones(3))
    return ratios[:, 0], ratios[:, 1]


def _harmless_labels(
    p: Float[np.ndarray, "heads e e"], q: Float[np.ndarray, "heads e e"], rho: float, labels: float
) -> float:
    """The λ at which the part of the step that λ multiplies, `λ Σₖ Pₖ[:, y] Qₖ[y, :]`, has norm one.

    Tokens are in units in which inputs and labels have size one, so that the answer does not depend on units:
    with D = diag(√ρ, …, √ρ, √λ₀), λ₀ = `labels`, it is `(λ/λ₀) Σₖ D⁻¹ Pₖ D e e' D Qₖ D` with e the label's axis.
    """
    units = np.sqrt(np.append(np.full(p.shape[-1] - 1, rho), labels))
    part = labels * np.einsum("hi,hj->ij", p[:, :, -1] / units, q[:, -1, :] * units)
    norm = float(np.linalg.norm(part))
    return labels / norm if norm > 0 else np.inf


@jax.jit
def _scaled(gram: Float[Array, "b e e"], thresholds: Float[Array, "3"]) -> Float[Array, "b e e"]:
    return jax.vmap(scale_context, (0, None))(gram, thresholds)


@jax.jit
def _next_gram(
    p: Float[Array, "heads e e"],
    q: Float[Array, "heads e e"],
    gram: Float[Array, "b e e"],
    thresholds: Float[Array, "3"],
) -> Float[Array, "b e e"]:
    """`T G Tᵀ` with `T = I + Σₖ Pₖ (G/r) Qₖ`."""
    damped = gram / jax.vmap(divisor, (0, None))(gram, thresholds)[:, None, None]
    t = jnp.eye(gram.shape[-1]) + jnp.einsum("hij,bjk,hkl->bil", p, damped, q)
    return jnp.einsum("bij,bjk,blk->bil", t, gram, t)
