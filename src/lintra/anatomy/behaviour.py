"""What each layer does at each noise level, and the noise level that a model acts on.

The objects are those of Lemma 4.3, layer by layer: `u ← (I + A) u + a b`, `w ← (1 + d) w − Mᵀ c`. For DIAG they
are the Λ, Γ, s, Π, Φ of Lemma 4.4: momentum is the mean of 1 − Λ, the rescaling 1 + s, the step −Π.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Key

from lintra.arguments import KeyLike, random_key
from lintra.baselines.bayes import Bayes
from lintra.baselines.oracle import correlation, implied_noise_std
from lintra.display import Row
from lintra.evaluation.estimate import Estimate
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics

NOISE_STDS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Noise levels σ at which models are read."""


def behaviour(
    model: AbstractModel,
    noise_stds: Sequence[float] = NOISE_STDS,
    *,
    num_sequences: int = 4096,
    key: KeyLike = 0,
) -> list[Row]:
    """Return a row for every layer and noise level, with means over contexts as long as those of training.

    The columns: `label`, a; `rescaling`, 1 + d; `step`, how much of the gradient `Σ (a w* − w)` is added to w, and
    the same along the directions of the least and the largest eigenvalue of Σ; `momentum`, how much of u is kept
    (`None` in the first layer, where u is zero); `memory`, how far u moves inputs, `‖u‖` times a label's size.
    """
    rows = []
    for noise_std in noise_stds:
        stats = _contexts(model, noise_std, num_sequences, random_key(key))
        effects = _layer_effects(model, stats)
        rows += [{"layer": layer, "noise_std": noise_std} | row for layer, row in enumerate(effects, 1)]
    return rows


def _contexts(model: AbstractModel, noise_std: float, num_contexts: int, key: Key[Array, ""]) -> GramStatistics:
    """Contexts of the model's own size at one noise level."""
    problem = NoisyRegression(dim=model.dim, num_examples=model.num_examples, noise=f"fixed({noise_std:g})")
    with in_64_bits():
        return sample_statistics(problem, (num_contexts,), key=key)[0]


def _layer_effects(model: AbstractModel, stats: GramStatistics) -> list[Row]:
    """Return what each layer does, by Lemma 4.3: `u ← (I + A) u + a b`, `w ← (1 + d) w − Mᵀ c`."""
    P, Q = model.matrices()
    gram = np.asarray(stats.gram)
    sigma, alpha, square = gram[:, :-1, :-1], gram[:, :-1, -1], gram[:, -1, -1]
    vectors = np.linalg.eigh(sigma)[1]
    batch, size = len(gram), gram.shape[-1]
    # C = [[M, u], [−wᵀ, a]] of every context, (b, d+1, d+1)
    implicit_map, rows = np.broadcast_to(np.eye(size), (batch, size, size)), []
    for p, q in zip(P, Q, strict=True):
        layer_gram = implicit_map @ gram @ implicit_map.transpose(0, 2, 1)
        middle = np.einsum("hai,bij,hjc->bac", p, layer_gram, q, optimize=True)  # T − I
        u, w, a = implicit_map[:, :-1, -1], -implicit_map[:, -1, :-1], implicit_map[:, -1, -1]
        implicit_map = implicit_map + middle @ implicit_map
        new_u, new_w = implicit_map[:, :-1, -1], -implicit_map[:, -1, :-1]
        scale = 1 + middle[:, -1, -1]
        gradient = a[:, None] * alpha - np.einsum("bij,bj->bi", sigma, w)  # Σ (a w* − w)
        change = new_w - scale[:, None] * w
        # along Σ's eigenvectors, the least eigenvalue first
        change_along, gradient_along = (np.einsum("bij,bi->bj", vectors, part) for part in (change, gradient))
        steps = (change_along * gradient_along).sum(0) / (gradient_along**2).sum(0)
        memory = float((u**2).sum())
        rows.append(
            {
                "label": float(a.mean()),
                "rescaling": float(scale.mean()),
                "step": float((change * gradient).sum() / (gradient**2).sum()),
                "step_at_least": float(steps[0]),
                "step_at_largest": float(steps[-1]),
                "momentum": float((new_u * u).sum() / memory) if memory > 0 else None,
                "memory": float(np.sqrt((new_u**2).sum(1).mean() * square.mean() / model.num_examples)),
            }
        )
    return rows


def implied_noise(
    model: AbstractModel,
    noise: str,
    noise_stds: Sequence[float] = NOISE_STDS,
    *,
    num_sequences: int = 4096,
    key: KeyLike = 0,
) -> list[Row]:
    """Return the implied noise standard deviation of a model and of the Bayes predictor, at each noise level.

    Args:
        model: The model.
        noise: The prior of the Bayes predictor, usually that of the model's training.
        noise_stds: True noise levels.
        num_sequences: Number of contexts at each.
        key: Randomness, a whole number or a key.

    Returns:
        A row for every noise level. Beside the means is the Bayes predictor's posterior mean of σ, and the
        correlation of the two implied noise levels over contexts.
    """
    bayes, rows = Bayes(noise), []
    for noise_std in noise_stds:
        stats = _contexts(model, noise_std, num_sequences, random_key(key))
        with in_64_bits():
            of_model = implied_noise_std(model.weights(stats), stats)
            of_bayes = implied_noise_std(bayes.weights(stats), stats)
            posterior = np.asarray(bayes.posterior_mean_std(stats))
            estimate = Estimate.from_values(np.asarray(of_model))
        rows.append(
            {
                "noise_std": noise_std,
                "implied_noise": estimate.mean,
                "standard_error": estimate.standard_error,
                "bayes_implied_noise": float(of_bayes.mean()),
                "bayes_posterior_mean": float(posterior.mean()),
                "correlation": correlation(of_model, of_bayes),
            }
        )
    return rows
