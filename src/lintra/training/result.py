"""Result of training: the model, its loss on fresh sequences, and whether it is sound."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from lintra.arguments import KeyLike, random_key
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate, Tail
from lintra.models.base import AbstractModel
from lintra.models.families import smallest_family
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress

_MAX_SHARE = 0.1  # of the loss that one sequence in a hundred thousand may have
_REMEDY = "Train it with another seed, more starts, or fewer layers."


@dataclass(frozen=True)
class TrainingResult:
    """A trained model and its loss.

    Attributes:
        model: The model.
        loss: Its adjusted loss on fresh sequences, with the standard error.
        tail: The tail of its adjusted losses.
        num_sequences: Number of fresh sequences.
        message: Why the model is not sound. Empty if it is.
        key: The key of the run, as a number or as the words of a JAX key.
        selected_family: The smallest family that contains the model, judged by its weights. It is smaller than
            that of the spec where model selection preferred a model of a smaller family.
        remark: A sentence on why the model is not the trained one of all layers. Empty if it is.
    """

    model: AbstractModel
    loss: Estimate
    tail: Tail
    num_sequences: int
    message: str
    key: int | tuple[int, ...]
    selected_family: str
    remark: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether the mean loss can be relied on: no few sequences dominate it."""
        return not self.message

    def to_row(self) -> dict[str, Any]:
        """Everything but the model, as plain values by name."""
        return {
            **self.loss.as_adjusted_loss(),
            "sequences": self.num_sequences,
            **vars(self.tail),
            "key": self.key,
            "is_sound": self.is_sound,
            "message": self.message,
            "selected_family": self.selected_family,
            "remark": self.remark,
        }


def assess(
    model: AbstractModel,
    problem: NoisyRegression,
    *,
    num_sequences: int = 1_000_000,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> TrainingResult:
    """Measure a model on fresh sequences, and decide whether it is sound.

    A model is not sound if it overflows, or if a few sequences dominate its mean loss and the worst of them is
    worse than predicting zero.

    Args:
        model: The model.
        problem: The problem that the sequences are drawn from.
        num_sequences: Number of sequences. Default: 1,000,000.
        key: Randomness, a number or a key. Default: 0.
        progress: Told about each block of sequences. Default: not shown.

    Returns:
        The result, with a message if the model is not sound.

    >>> from lintra.models import GDPlusPlus
    >>> model = GDPlusPlus([[[0.0, -0.3]]] * 3, num_examples=20, dim=10)
    >>> assess(model, NoisyRegression(noise="fixed(1)"), num_sequences=10_000).is_sound
    True
    """
    comparison = evaluate(model, problem, num_sequences=num_sequences, key=random_key(key), progress=progress)
    loss, tail = comparison.adjusted(), comparison.tail()
    # The loss of zero weights is half the mean square of ⟨w, x⟩, which is tr Λ / 2.
    square = problem.dim if problem.covariance is None else float(np.trace(problem.covariance))
    loss_of_zero = square / 2 - comparison.unadjusted("oracle").mean
    ascending, num_worst = np.sort(comparison.losses()), max(num_sequences // 100_000, 1)
    message = ""
    if not math.isfinite(loss.mean):
        message = f"The model overflows on some of {num_sequences:,} sequences. {_REMEDY}"
    elif (
        share := float(ascending[-num_worst:].sum() / ascending.sum())
    ) > _MAX_SHARE and tail.worst > loss_of_zero:
        message = (
            f"Of {num_sequences:,} sequences the worst {num_worst} have {share:.0%} of the loss, and the worst is "
            f"{tail.worst:.3g}, where predicting zero has {loss_of_zero:.3g} on average: the model diverges on "
            f"rare sequences and is not sound. {_REMEDY}"
        )
    return TrainingResult(model, loss, tail, num_sequences, message, plain_key(key), smallest_family(model))


def plain_key(key: KeyLike) -> int | tuple[int, ...]:
    """A key as a number, or as the words of a JAX key, for files and tables.

    >>> plain_key(3), plain_key(jax.random.key(3))
    (3, (0, 3))
    """
    return tuple(jax.random.key_data(key).tolist()) if isinstance(key, jax.Array) else int(key)
