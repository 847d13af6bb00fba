"""What each layer does at each noise level, with standard errors over contexts.

The objects are those of Lemma 4.3, layer by layer: `u ← (I + A) u + a b`, `w ← (1 + d) w − Mᵀ c`. For DIAG they
are the Λ, Γ, s, Π, Φ of Lemma 4.4: momentum is the mean of 1 − Λ, the rescaling 1 + s, the step −Π.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Float, Key

from lintra.arguments import KeyLike, random_key
from lintra.display import Row
from lintra.evaluation.estimate import Estimate
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.problem.noise import AbstractDiscretePrior, AbstractNoisePrior, Fixed, parse_noise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics

NOISE_STDS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Noise levels σ at which models are read, unless their prior says otherwise."""
NUM_CONTEXTS = 4096
"""Number of contexts at each noise level."""
_SHARES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the range of a continuous prior
_BEYOND = 1.2  # times the largest σ of a prior: a level that it does not have
_LOW_SHARE = _SHARES[2]


def reading_noise_stds(noise: str | AbstractNoisePrior) -> list[float]:
    """Return the noise levels at which a model of a noise prior is read: its range, zero and one level beyond.

    >>> reading_noise_stds("uniform(0,5)") == list(NOISE_STDS)
    True
    >>> reading_noise_stds("choice(1,3)"), reading_noise_stds("fixed(0)")
    ([0.0, 1.0, 3.0, 3.6], [0.0])
    """
    prior = parse_noise(noise)
    low, high = prior.support()
    if isinstance(prior, AbstractDiscretePrior):
        inside = [float(noise_std) for noise_std in np.asarray(prior.atoms()[0])]
    else:
        inside = [low + share * (high - low) for share in _SHARES]
    # rounded to 12 digits, so that 0.2 · 0.6 is 0.12
    return sorted({float(f"{noise_std:.12g}") for noise_std in (0.0, *inside, _BEYOND * high)})


def compared_noise_stds(noise: str | AbstractNoisePrior) -> tuple[float, float]:
    """Return a low and a high noise level of a prior, equal if it has one only.

    >>> compared_noise_stds("uniform(0,5)"), compared_noise_stds("choice(1,3,5)")
    ((1.0, 5.0), (1.0, 5.0))
    """
    prior = parse_noise(noise)
    low, high = prior.support()
    share = 0.0 if isinstance(prior, AbstractDiscretePrior) else _LOW_SHARE
    return float(f"{low + share * (high - low):.12g}"), float(f"{high:.12g}")


def behaviour(
    model: AbstractModel,
    noise_stds: Sequence[float] = NOISE_STDS,
    *,
    num_sequences: int = NUM_CONTEXTS,
    key: KeyLike = 0,
) -> list[Row]:
    """Measure what every layer does at every noise level, on contexts as long as those of training.

    Args:
        model: The model. If it is damped, its layers are measured with the damping.
        noise_stds: Noise levels σ.
        num_sequences: Number of contexts at each, the same inputs for all levels.
        key: Randomness, a whole number or a key.

    Returns:
        A row for every layer and noise level. The columns: `label`, a; `rescaling`, 1 + d, and its standard
        deviation over contexts, `rescaling_spread`; `step`, how much of the gradient `Σ (a w* − w)` is added to w,
        and the same along the directions of the least and the largest eigenvalue of Σ; `momentum`, how much of u
        is kept; `memory`, how far u moves inputs, `‖u‖` times a label's size. Each has a column with its
        standard error. A value is `None` where it is not defined: a step where the gradient is zero, momentum
        where u is zero. It is NaN or infinite where a context overflows; `overflowed` counts these.
    """
    rows = []
    for noise_std in noise_stds:
        stats = sample_contexts(model, noise_std, num_sequences, random_key(key))
        effects = _layer_effects(model, stats)
        rows += [{"layer": layer, "noise_std": noise_std} | row for layer, row in enumerate(effects, 1)]
    return rows


def sample_contexts(
    model: AbstractModel, noise_std: float, num_contexts: int, key: Key[Array, ""]
) -> GramStatistics:
    """Draw contexts of the model's own size at one noise level."""
    problem = NoisyRegression(dim=model.dim, num_examples=model.num_examples, noise=Fixed(noise_std))
    with in_64_bits():
        return sample_statistics(problem, (num_contexts,), key=key)[0]


def _layer_effects(model: AbstractModel, stats: GramStatistics) -> list[Row]:
    """Return what each layer does, by Lemma 4.3: `u ← (I + A) u + a b`, `w ← (1 + d) w − Mᵀ c`."""
    P, Q = model.matrices()
    with in_64_bits():
        divisors = model.divisors(stats)  # all one for a model as printed
    gram = np.asarray(stats.gram) / np.asarray(divisors.scaling)[:, None, None]
    vectors = np.linalg.eigh(gram[:, :-1, :-1])[1]
    batch, size = len(gram), gram.shape[-1]
    # C = [[M, u], [−wᵀ, a]] of every context, (b, d+1, d+1)
    before, rows = np.broadcast_to(np.eye(size), (batch, size, size)), []
    with np.errstate(all="ignore"):  # a model may overflow, which the rows say
        for layer, (p, q) in enumerate(zip(P, Q, strict=True)):
            layer_gram = before @ gram @ before.transpose(0, 2, 1)
            step = np.einsum("hai,bij,hjc->bac", p, layer_gram, q, optimize=True)  # T − I
            step = step / np.asarray(divisors.layers)[:, layer, None, None]
            after = before + step @ before
            rows.append(_effect(before, after, 1 + step[:, -1, -1], gram, vectors, model.num_examples))
            before = after
    return rows


def _effect(
    before: Float[np.ndarray, "b e e"],
    after: Float[np.ndarray, "b e e"],
    scale: Float[np.ndarray, " b"],
    gram: Float[np.ndarray, "b e e"],
    vectors: Float[np.ndarray, "b d d"],
    num_examples: int,
) -> Row:
    """Read one layer from C before and after it, and from its 1 + d."""
    sigma, alpha, square = gram[:, :-1, :-1], gram[:, :-1, -1], gram[:, -1, -1]
    (u, w), (new_u, new_w) = ((c[:, :-1, -1], -c[:, -1, :-1]) for c in (before, after))
    a = before[:, -1, -1]
    gradient = a[:, None] * alpha - np.einsum("bij,bj->bi", sigma, w)  # Σ (a w* − w)
    change = new_w - scale[:, None] * w
    # along Σ's eigenvectors, the least eigenvalue first, (b, d)
    change_along, gradient_along = (np.einsum("bij,bi->bj", vectors, part) for part in (change, gradient))
    products, squares = change_along * gradient_along, gradient_along**2
    columns = {
        "label": Estimate.from_values(a),
        "rescaling": Estimate.from_values(scale),
        "step": ratio_of_means(products.sum(1), squares.sum(1)),
        "step_at_least": ratio_of_means(products[:, 0], squares[:, 0]),
        "step_at_largest": ratio_of_means(products[:, -1], squares[:, -1]),
        "momentum": ratio_of_means((new_u * u).sum(1), (u**2).sum(1)),
        "memory": _root_of_product((new_u**2).sum(1), square / num_examples),
    }
    row: Row = {}
    for name, estimate in columns.items():
        row[name] = None if estimate is None else estimate.mean
        row[f"{name}_standard_error"] = None if estimate is None else estimate.standard_error
    num_overflowed = int((~np.isfinite(after).all(axis=(1, 2))).sum())
    return row | {"rescaling_spread": float(np.std(scale)), "overflowed": num_overflowed}


def ratio_of_means(numerators: Float[np.ndarray, " n"], denominators: Float[np.ndarray, " n"]) -> Estimate | None:
    """Return the ratio of two means over contexts and its standard error, or `None` if the lower one is zero.

    The error of r = ȳ/x̄ is that of the mean of (yᵢ − r xᵢ)/x̄, to first order.

    >>> ratio_of_means(np.asarray([2.0, 4.0]), np.asarray([1.0, 2.0]))
    Estimate(mean=2.0, standard_error=0.0)
    """
    if not denominators.any():
        return None
    ratio = numerators.mean() / denominators.mean()
    residuals = (numerators - ratio * denominators) / denominators.mean()
    return Estimate(float(ratio), Estimate.from_values(residuals).standard_error)


def _root_of_product(first: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"]) -> Estimate:
    """`√(x̄ ȳ)` and its standard error, that of the mean of ½ √(x̄ ȳ) (xᵢ/x̄ + yᵢ/ȳ), to first order."""
    if not first.any():
        return Estimate(0.0, 0.0)
    root = float(np.sqrt(first.mean() * second.mean()))
    influence = 0.5 * root * (first / first.mean() + second / second.mean())
    return Estimate(root, Estimate.from_values(influence).standard_error)
