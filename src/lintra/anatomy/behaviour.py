"""What a model does, at each noise level: how it scales, steps and remembers, and which noise it believes in.

The objects are those of Lemma 4.3, layer by layer: `u ← (I + A) u + a b`, `w ← (1 + d) w − Mᵀ c`. For DIAG they
are the Λ, Γ, s, Π, Φ of Lemma 4.4: momentum is the mean of 1 − Λ, the rescaling 1 + s, the step −Π.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Key

from lintra.baselines.bayes import Bayes
from lintra.baselines.oracle import believed_noise, correlation
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics

LEVELS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)

Row = dict[str, Any]
"""Values by column."""


def behaviour(
    model: AbstractModel, levels: Sequence[float] = LEVELS, *, num_sequences: int = 4096, key: Key[Array, ""]
) -> list[Row]:
    """A row for every layer and noise level, with means over contexts as long as those that it was trained on.

    The columns: `label`, a; `rescaling`, 1 + d; `step`, how much of the gradient `Σ (a w* − w)` is added to w, and
    the same along the directions of the least and the largest eigenvalue of Σ; `momentum`, how much of u is kept
    (nothing in the first layer, where u is zero); `memory`, how far u moves inputs, `‖u‖` times a label's size.
    """
    rows = []
    for std in levels:
        stats = _contexts(model, std, num_sequences, key)
        rows += [{"layer": layer, "std": std} | row for layer, row in enumerate(_layers(model, stats), 1)]
    return rows


def _contexts(model: AbstractModel, std: float, count: int, key: Key[Array, ""]) -> GramStatistics:
    """Contexts of the model's own size at one noise level."""
    problem = NoisyRegression(dim=model.dim, context=model.context, noise=f"fixed({std:g})")
    return sample_statistics(problem, key, (count,))[0]


def _layers(model: AbstractModel, stats: GramStatistics) -> list[Row]:
    P, Q = model.matrices()
    gram = np.asarray(stats.gram)
    sigma, alpha, square = gram[:, :-1, :-1], gram[:, :-1, -1], gram[:, -1, -1]
    vectors = np.linalg.eigh(sigma)[1]
    batch, size = len(gram), gram.shape[-1]
    moved, rows = np.broadcast_to(np.eye(size), (batch, size, size)), []
    for p, q in zip(P, Q, strict=True):
        seen = moved @ gram @ moved.transpose(0, 2, 1)
        middle = np.einsum("hai,bij,hjc->bac", p, seen, q, optimize=True)
        u, w, a = moved[:, :-1, -1], -moved[:, -1, :-1], moved[:, -1, -1]
        moved = moved + middle @ moved
        new_u, new_w = moved[:, :-1, -1], -moved[:, -1, :-1]
        scale = 1 + middle[:, -1, -1]
        pull = a[:, None] * alpha - np.einsum("bij,bj->bi", sigma, w)
        change = new_w - scale[:, None] * w
        along = (np.einsum("bij,bi->bj", vectors, part) for part in (change, pull))
        turned, turned_pull = along
        steps = (turned * turned_pull).sum(0) / (turned_pull**2).sum(0)
        memory = float((u**2).sum())
        rows.append(
            {
                "label": float(a.mean()),
                "rescaling": float(scale.mean()),
                "step": float((change * pull).sum() / (pull**2).sum()),
                "step_at_least": float(steps[0]),
                "step_at_largest": float(steps[-1]),
                "momentum": float((new_u * u).sum() / memory) if memory > 0 else None,
                "memory": float(np.sqrt((new_u**2).sum(1).mean() * square.mean() / model.context)),
            }
        )
    return rows


def beliefs(
    model: AbstractModel,
    noise: str,
    levels: Sequence[float] = LEVELS,
    *,
    num_sequences: int = 4096,
    key: Key[Array, ""],
) -> list[Row]:
    """At each noise level: the σ that a model acts as if it believed, and the Bayes predictor's mean of σ.

    Arguments:
        model: What is read.
        noise: The prior that the Bayes predictor has, by custom that of the model's training.
        levels: True noise levels.
        num_sequences: Contexts at each.
        key: Randomness.
    """
    bayes, rows = Bayes(noise), []
    for std in levels:
        stats = _contexts(model, std, num_sequences, key)
        mine = believed_noise(model.weights(stats), stats)
        best = believed_noise(bayes.weights(stats), stats)
        posterior = np.asarray(bayes.posterior_mean_std(stats))
        rows.append(
            {
                "std": std,
                "believed": float(mine.mean()),
                "standard_error": float(mine.std() / num_sequences**0.5),
                "bayes_believed": float(best.mean()),
                "bayes_mean_std": float(posterior.mean()),
                "correlation": correlation(mine, best),
            }
        )
    return rows
