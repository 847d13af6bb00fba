"""What came out of training: the model, its loss on a million fresh sequences, and whether it can be relied on."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Key

from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate, Tail
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Track

_OWNED = 0.1  # share in the loss from which on one sequence in a hundred thousand owns the mean
_REMEDY = "Train it with another seed, more seeds, or fewer layers."


@dataclass(frozen=True)
class Trained:
    """A trained model and how good it is.

    Attributes:
        model: The model.
        loss: Its adjusted loss, with the standard error.
        tail: The tail of its adjusted loss.
        sequences: How many fresh sequences these were measured on.
        complaint: Why it cannot be relied on; empty if it can.
    """

    model: AbstractModel
    loss: Estimate
    tail: Tail
    sequences: int
    complaint: str

    def figures(self) -> dict[str, Any]:
        """Everything but the model, as plain numbers."""
        return {
            **self.loss.as_adjusted_loss(),
            "sequences": self.sequences,
            **vars(self.tail),
            "complaint": self.complaint,
        }


def judge(
    model: AbstractModel,
    problem: NoisyRegression,
    *,
    num_sequences: int = 1_000_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> Trained:
    """Measure a model on fresh sequences, and say so if a few exploding ones own its mean.

    >>> import jax
    >>> from lintra.models import GDPlusPlus
    >>> steps = GDPlusPlus([[[0.0, -0.3]]] * 3, context=20, dim=10)
    >>> result = judge(steps, NoisyRegression(noise="fixed(1)"), num_sequences=10_000, key=jax.random.key(0))
    >>> result.complaint
    ''
    """
    measured = evaluate({"model": model}, problem, num_sequences=num_sequences, key=key, track=track)
    loss, tail = measured.adjusted("model"), measured.tail("model")
    square = problem.dim if problem.covariance is None else float(np.trace(problem.covariance))
    zero = square / 2 - measured.unadjusted["oracle"].mean
    ordered, few = np.sort(measured.losses["model"]), max(num_sequences // 100_000, 1)
    complaint = ""
    if not math.isfinite(loss.mean):
        complaint = f"The model overflows on some of {num_sequences:,} sequences. {_REMEDY}"
    elif (share := float(ordered[-few:].sum() / ordered.sum())) > _OWNED and tail.worst > zero:
        complaint = (
            f"Of {num_sequences:,} sequences the worst {few} own {share:.0%} of the loss, and the worst is "
            f"{tail.worst:.3g}, where predicting zero costs {zero:.3g} on average: the model explodes on rare "
            f"sequences and cannot be relied on. {_REMEDY}"
        )
    return Trained(model, loss, tail, num_sequences, complaint)
