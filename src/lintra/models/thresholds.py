"""Thresholds of damping, measured on sequences of the problem that a model was trained on."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lintra import arguments
from lintra.arguments import KeyLike
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.models.damping import Damping, divisor, scale_context
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics

QUANTILE = 0.9999
"""Fraction of the sequences on which a layer is not damped."""
_LABEL_MARGIN = 4.0  # κ over the same quantile of λ: labels are damped only where they are far outside


def measure_damping(
    model: AbstractModel,
    problem: NoisyRegression | str,
    *,
    num_sequences: int = 65_536,
    quantile: float = QUANTILE,
    key: KeyLike = 0,
) -> Damping:
    """Measure the range of a model's layers on sequences of its problem.

    ρˡ is a quantile of ‖Σˡ‖_F, layer by layer, with the earlier layers damped. κˡ is four times the same quantile
    of λˡ or, if that is larger, of λ⁰. Without noise λˡ falls by many orders of magnitude, and to damp a layer
    because its labels are a little larger than 1e-10 would ruin a good model.

    Args:
        model: The model; its own damping is not used.
        problem: The problem it was trained on, or its noise prior as text.
        num_sequences: Number of sequences. Default: 65,536.
        quantile: Fraction of the sequences that are inside of the range of each layer. Default: 0.9999.
        key: Randomness, a number or a key. Default: 0.

    Returns:
        Thresholds for `model.with_damping`.
    """
    if not isinstance(problem, NoisyRegression):
        problem = NoisyRegression(model.dim, model.num_examples, problem)
    num_sequences = arguments.whole_number("num_sequences", num_sequences)
    with in_64_bits():
        stats, _ = sample_statistics(problem, (num_sequences,), key=arguments.random_key(key))
        gram = stats.gram
        rhos: list[float] = []
        kappas: list[float] = []
        for p, q in zip(*model.matrices(), strict=True):
            rhos.append(float(np.quantile(_sizes(gram)[0], quantile)))
            if len(rhos) == 1:
                gram = _scaled(gram, jnp.asarray(rhos[0]))
            largest_label = _LABEL_MARGIN * float(np.quantile(_sizes(gram)[1], quantile))
            kappas.append(max([largest_label, *kappas[:1]]))
            gram = _next_gram(jnp.asarray(p), jnp.asarray(q), gram, jnp.asarray([rhos[-1], kappas[-1]]))
        return Damping(np.asarray(rhos), np.asarray(kappas))


@jax.jit
def _sizes(gram: Float[Array, "b e e"]) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
    """‖Σ‖_F and λ of every sequence."""
    return jnp.sqrt(jnp.sum(gram[:, :-1, :-1] ** 2, axis=(1, 2))), gram[:, -1, -1]


@jax.jit
def _scaled(gram: Float[Array, "b e e"], rho: Float[Array, ""]) -> Float[Array, "b e e"]:
    return jax.vmap(scale_context, (0, None))(gram, jnp.stack([rho, jnp.inf]))


@jax.jit
def _next_gram(
    p: Float[Array, "heads e e"],
    q: Float[Array, "heads e e"],
    gram: Float[Array, "b e e"],
    thresholds: Float[Array, "2"],
) -> Float[Array, "b e e"]:
    """`T G Tᵀ` with `T = I + Σₖ Pₖ (G/r) Qₖ`."""
    damped = gram / jax.vmap(divisor, (0, None))(gram, thresholds)[:, None, None]
    t = jnp.eye(gram.shape[-1]) + jnp.einsum("hij,bjk,hkl->bil", p, damped, q)
    return jnp.einsum("bij,bjk,blk->bil", t, gram, t)
