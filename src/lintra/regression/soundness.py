"""Whether a model can be trusted on a context, and the cause where it cannot.

A linear transformer depends on its inputs only through Σ/n. Training had independent inputs of variance one, for
which Σ/n is near the identity. A context with such a Σ/n is *typical*: there the model does what it was measured
to do. Elsewhere its weights are compared with those of the Bayes predictor.
"""

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lintra.statistics.gram import GramStatistics

MAX_EXCESS_RISK = 0.3  # expected squared error above the Bayes predictor's, relative to it: 1.3 times is sound
_MAX_RESIDUAL = 1.001  # sum of squared residuals, relative to that of zero weights; the rest is rounding
_QUANTILE = 3.0  # standard deviations; 0.3 % to 8 % of contexts with independent inputs are not typical
_MAX_LABELS = 4.0  # mean square of labels, relative to its expectation under the prior


class UnsoundWarning(UserWarning):
    """A model is not reliable on a context. The message has the cause, the remedy, and which method answered."""


class Cause(Enum):
    """Why a model is not reliable, and what to do about it: the text and the remedy of a warning."""

    SCALE = (
        "inputs are not standardised",
        "pass `standardise=True` or divide them by their standard deviations",
    )
    CENTRE = (
        "inputs are strongly correlated or have a mean that is not zero",
        "pass `fit_intercept=True` if their means are not zero; drop inputs that repeat one another",
    )
    CORRELATION = (
        "inputs are strongly correlated",
        "drop inputs that repeat one another, or use the answer as it is",
    )
    LABELS = (
        "labels are larger than in training",
        "divide them by their standard deviation or use `model='auto'`",
    )
    MODEL = "the weights diverge", "use another model, such as `model='auto'`"


CAUSES = tuple(Cause)
"""All causes, in the order of `diagnose`."""


def fits(stats: GramStatistics, weights: Float[Array, "b d"]) -> Bool[Array, " b"]:
    """Return whether weights are finite and fit their own context no worse than zero weights do."""
    # Σ (y − ⟨w, x⟩)² is vᵀ G v with v = (−w, 1).
    vector = jnp.concatenate([-weights, jnp.ones_like(weights[:, :1])], axis=1)
    residual = jnp.sum(jnp.einsum("bij,bj->bi", stats.gram, vector) * vector, axis=1)
    return jnp.isfinite(weights).all(axis=-1) & (residual <= _MAX_RESIDUAL * stats.yy)


def is_typical(stats: GramStatistics) -> Bool[Array, " b"]:
    """Return whether Σ/n is as near to the identity as it is for independent inputs of variance one.

    For these, n tr(Σ/n) is a χ² variable with nd degrees of freedom, and `‖Σ/n − I‖²` in the Frobenius norm is
    about 2/n times one with d(d+1)/2.
    """
    num_examples = stats.num_examples.astype(stats.gram.dtype)
    covariance = stats.xx / num_examples[:, None, None]
    trace = jnp.trace(covariance, axis1=1, axis2=2)
    mean_square = trace / stats.dim
    square_norm = jnp.sum(covariance**2, axis=(1, 2)) - 2 * trace + stats.dim  # ‖A − I‖² = ‖A‖² − 2 tr A + d
    freedom = stats.dim * (stats.dim + 1) / 2
    return (
        (mean_square >= _chi_square_quantile(num_examples * stats.dim, -_QUANTILE))
        & (mean_square <= _chi_square_quantile(num_examples * stats.dim, _QUANTILE))
        & (square_norm <= 2 / num_examples * freedom * _chi_square_quantile(freedom, _QUANTILE))
    )


def _chi_square_quantile(freedom: Any, deviations: float) -> Any:
    """Return the quantile of χ²/k, k = `freedom`, that a normal variable has at `deviations` standard deviations.

    This is the approximation of Wilson and Hilferty: the cube root of χ²/k is about normal.
    """
    spread = 2 / (9 * freedom)
    return jnp.maximum(1 - spread + deviations * spread**0.5, 0) ** 3


def has_typical_labels(stats: GramStatistics, label_var: Float[Array, ""]) -> Bool[Array, " b"]:
    """Return whether labels are not much larger than in training, where they have mean square `label_var`."""
    limit = (_MAX_LABELS * label_var).astype(stats.gram.dtype)
    return stats.yy <= limit * stats.num_examples.astype(stats.gram.dtype)


def diagnose(stats: GramStatistics, *, label_var: Float[Array, ""] | None, centred: bool) -> Int[Array, " b"]:
    """Return the main cause for each of several contexts on which a model is not reliable.

    Args:
        stats: Contexts, as the model was shown them.
        label_var: Mean square of the labels in training, or `None` if labels may have any unit.
        centred: Whether inputs were centred.

    Returns:
        Positions in `CAUSES`.
    """
    num_examples = stats.num_examples.astype(stats.gram.dtype)
    mean_squares = jnp.diagonal(stats.xx, axis1=1, axis2=2) / num_examples[:, None]
    # The logarithm of the mean square of n standard normal values has standard deviation √(2/n) about.
    spread = jnp.maximum(0.5, 3 * jnp.sqrt(2 / num_examples))
    has_unit_scale = jnp.max(jnp.abs(jnp.log(mean_squares)), axis=1) <= spread
    labels = True if label_var is None else has_typical_labels(stats, label_var)
    inputs = CAUSES.index(Cause.CORRELATION if centred else Cause.CENTRE)
    return jnp.where(
        is_typical(stats),
        jnp.where(labels, CAUSES.index(Cause.MODEL), CAUSES.index(Cause.LABELS)),
        jnp.where(has_unit_scale, inputs, CAUSES.index(Cause.SCALE)),
    )


def describe_fallback(fallback: Mapping[int, Cause], num_contexts: int, noun: str = "contexts") -> str:
    """Return the warning that names the contexts on which a model is not reliable, the causes and the remedies.

    Args:
        fallback: The cause for each context on which the model is not reliable, by its index.
        num_contexts: Number of all contexts.
        noun: What contexts are called. Default "contexts".

    >>> describe_fallback({3: Cause.MODEL}, 10).split(". ")[1]
    "Cause: the weights diverge (1); remedy: use another model, such as `model='auto'`."
    """
    causes = Counter(fallback.values())
    reasons = [
        f"Cause: {cause.value[0]} ({causes[cause]}); remedy: {cause.value[1]}."
        for cause in CAUSES
        if causes[cause]
    ]
    first = f" (the first is number {min(fallback)})" if num_contexts > 1 else ""
    where = f"On {len(fallback)} of {num_contexts} {noun}{first} the model is not reliable"
    return " ".join([f"{where}, and the Bayes predictor answered.", *reasons])
