"""What came out of training: the model, its loss on a million fresh sequences, and whether it can be relied on."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Key

from lintra.evaluation import Track, evaluate
from lintra.losses import Estimate, Tail
from lintra.models import AbstractModel
from lintra.problem import NoisyRegression

_OWNED = 0.1  # share of the ten largest sequences in the loss from which on they own the mean
_EXPLODED = 10.0  # times the loss of predicting zero


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
            "adjusted_loss": self.loss.mean,
            "standard_error": self.loss.standard_error,
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

    >>> from lintra.models import GDPlusPlus
    >>> steep = GDPlusPlus([[[0.0, -1.6]]] * 6, context=20, dim=10)
    >>> print(judge(steep, NoisyRegression(noise="fixed(1)"), num_sequences=10_000, key=jax.random.key(0)).complaint)
    Ten of 10,000 sequences...
    """
    measured = evaluate({"model": model}, problem, num_sequences=num_sequences, key=key, track=track)
    loss, tail = measured.adjusted("model"), measured.tail("model")
    zero = measured.unadjusted["oracle"].mean + problem.dim / 2
    owned = not tail.top_ten_share <= _OWNED and not tail.worst <= _EXPLODED * zero
    complaint = ""
    if owned:
        complaint = (
            f"Ten of {num_sequences:,} sequences own {tail.top_ten_share:.0%} of the loss, and the worst is "
            f"{tail.worst:.3g}: the model explodes on rare sequences and cannot be relied on. Train it with "
            "another seed, more seeds, or fewer layers."
        )
    return Trained(model, loss, tail, num_sequences, complaint)
