"""How often each layer of a damped model is divided on sequences of its problem, and by how much."""

from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.arguments import KeyLike, random_key, whole_number
from lintra.display import Row
from lintra.evaluation.blocks import block_size, map_blocks
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.models.damping import Divisors
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.sampling import sample_statistics

_ROUNDING = 1e-9  # a scaled context is at its threshold, to the last digits, and not outside


def damped_layers(
    model: AbstractModel, problem: NoisyRegression, *, num_sequences: int = 65_536, key: KeyLike = 0
) -> list[Row]:
    """Measure how often a model is damped on sequences of a problem.

    Args:
        model: The model. If it is as printed, it is measured with the damping that is stored with it.
        problem: The problem, usually that of the model's training.
        num_sequences: Number of sequences. Default: 65,536.
        key: Randomness, a number or a key. Default: 0.

    Returns:
        A row for the scaling of the context and one for every layer, or none for a model without thresholds. The
        columns: `rho` and `kappa`, as printed, with t as `rho` of the context; median and 99 % quantile of
        `‖Σ‖₄ / ρ` or `tr Σ / t` (`inputs`) and of `λ / κ` (`labels`); `damped_share` of the sequences with its
        standard error; `largest_divisor`.
    """
    if model.damping is None and model.stored_damping is None:
        return []
    num_sequences = whole_number("num_sequences", num_sequences)
    size = block_size(problem.dim)
    with in_64_bits():
        model = model.with_damping()
        measure = jax.jit(partial(_block, model, problem, size))
        blocks = [part for _, part in map_blocks(measure, -(-num_sequences // size), random_key(key))]
    divisors = jax.tree.map(lambda *parts: np.concatenate(parts)[:num_sequences], *blocks)
    damping = model.damping
    assert damping is not None
    no_labels = np.zeros(num_sequences)
    rows = [_row("context", float(damping.trace), None, divisors.context_ratio, no_labels)]
    for layer in range(model.num_layers):
        thresholds = float(damping.rho[layer]), float(damping.kappa[layer])
        rows.append(_row(layer + 1, *thresholds, divisors.input_ratios[:, layer], divisors.label_ratios[:, layer]))
    return rows


def _block(model: AbstractModel, problem: NoisyRegression, size: int, key: Key[Array, ""]) -> Divisors:
    return model.divisors(sample_statistics(problem, (size,), key=key)[0])


def _row(
    layer: int | str,
    rho: float,
    kappa: float | None,
    inputs: Float[np.ndarray, " b"],
    labels: Float[np.ndarray, " b"],
) -> Row:
    """Summarise the ratios of one layer over all sequences."""
    divisor = np.maximum(inputs, labels)
    share = float(np.mean(divisor > 1 + _ROUNDING))
    has_labels = kappa is not None and np.isfinite(kappa)
    return {
        "layer": layer,
        "rho": rho,
        "kappa": kappa if has_labels else None,
        "inputs_median": float(np.median(inputs)),
        "inputs_99": float(np.quantile(inputs, 0.99)),
        "labels_median": float(np.median(labels)) if has_labels else None,
        "labels_99": float(np.quantile(labels, 0.99)) if has_labels else None,
        "damped_share": share,
        "standard_error": (share * (1 - share) / len(inputs)) ** 0.5,  # of a share: binomial
        "largest_divisor": float(max(1.0, divisor.max())),
    }
