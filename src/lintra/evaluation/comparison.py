"""Losses of several predictors on the same sequences, by name."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lintra.evaluation.estimate import Estimate, Repeated, Tail


@dataclass(frozen=True)
class Comparison:
    """Adjusted losses of several predictors on the same sequences.

    Attributes:
        losses: Adjusted loss of every sequence, by name.
        unadjusted: The loss before the oracle's is subtracted, by name, the oracle's own under `oracle`.
        worse_than_zero: Share of sequences on which predicting zero would have been better, by name.
        protocol: Adjusted loss of every sequence at one sampled query, by name, if asked for.
    """

    losses: dict[str, Float[np.ndarray, " n"]]
    unadjusted: dict[str, Estimate]
    worse_than_zero: dict[str, float]
    protocol: dict[str, Float[np.ndarray, " n"]]

    def adjusted(self, name: str) -> Estimate:
        """Adjusted loss of one predictor."""
        return Estimate.of(self.losses[name])

    def difference(self, name: str, other: str) -> Estimate:
        """Paired difference of adjusted losses: negative where `name` is better than `other`."""
        with np.errstate(invalid="ignore"):
            return Estimate.of(self.losses[name] - self.losses[other])

    def repeated(self, name: str, num_sequences: int = 100_000) -> "Repeated":
        """The paper's protocol, on the first `num_sequences` sequences, the next, and so on."""
        values = self.protocol[name]
        count = len(values) // num_sequences
        if not count:
            raise ValueError(f"`num_sequences` must be at most {len(values):,}, as many as were measured.")
        return Repeated(values[: count * num_sequences].reshape(count, -1).mean(axis=1))

    def tail(self, name: str) -> Tail:
        """The tail of one predictor's adjusted loss."""
        return Tail.of(self.losses[name], self.worse_than_zero[name])
