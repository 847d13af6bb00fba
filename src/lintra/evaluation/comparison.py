"""Losses of several predictors on the same sequences, by name and layer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from lintra.arguments import KeyLike
from lintra.display import Row
from lintra.evaluation.blocks import BlockLosses
from lintra.evaluation.estimate import (
    Estimate,
    Moments,
    ProtocolQuantiles,
    Tail,
    share_of_largest,
)
from lintra.evaluation.named_predictors import ORACLE
from lintra.evaluation.robustness import is_exploded
from lintra.problem.noisy_regression import NoisyRegression

Value = TypeVar("Value")
Output = tuple[str, int | None]
"""A predictor's name and the layer whose prediction is measured; `None` for the predictor's own prediction."""

_ENOUGH = 5  # repetitions of the protocol, from which on their quantiles are used
_NUM_LARGEST = 10  # sequences of a repetition that may dominate it
PROTOCOL_SEQUENCES = 100_000
"""Number of sequences in the paper's evaluation."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Losses of several predictors on the same sequences.

    Methods take the name of a predictor, which can be left out where there is one predictor only, and a layer,
    which stands for the last one where it is left out.

    Attributes:
        problem: Where the sequences come from.
        num_sequences: Number of sequences.
        key: Randomness of the sequences.
        adjusted_losses: Adjusted loss of every sequence, by name and layer.
        unadjusted_losses: Mean loss before the oracle's is subtracted; the oracle's own is under `oracle`.
        worse_shares: Share of sequences on which predicting zero would have been better.
        protocol_losses: Adjusted loss of every sequence at one sampled query; empty unless asked for.
    """

    problem: NoisyRegression
    num_sequences: int
    key: KeyLike
    adjusted_losses: dict[Output, Float[np.ndarray, " n"]]
    unadjusted_losses: dict[Output, Estimate]
    worse_shares: dict[Output, float]
    protocol_losses: dict[Output, Float[np.ndarray, " n"]]

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[tuple[int, BlockLosses]],
        layers: Mapping[str, tuple[int | None, ...]],
        problem: NoisyRegression,
        *,
        num_sequences: int,
        key: KeyLike,
    ) -> "Comparison":
        """Join blocks of losses.

        Args:
            blocks: Index and losses of each block; all have the same number of sequences.
            layers: What the first axis of the losses stands for, by name.
            problem: Where the sequences come from.
            num_sequences: Number of sequences to keep. The last block may have more.
            key: Randomness of the sequences.
        """
        outputs = [(name, layer) for name in layers for layer in layers[name]]
        adjusted = {output: np.empty(num_sequences) for output in outputs}
        protocol: dict[Output, np.ndarray] = {}
        moments = dict.fromkeys([*outputs, (ORACLE, None)], Moments())
        num_worse = dict.fromkeys(outputs, 0)
        all_layers = {**layers, ORACLE: (None,)}

        def by_output(losses: Mapping[str, Any]) -> dict[Output, np.ndarray]:
            return {
                (name, layer): values
                for name, rows in losses.items()
                for layer, values in zip(all_layers[name], rows, strict=True)
            }

        for index, block in blocks:
            size = next(iter(block.adjusted.values())).shape[-1]
            block_slice = slice(index * size, min((index + 1) * size, num_sequences))
            num_kept = block_slice.stop - block_slice.start
            for output, values in by_output(block.adjusted).items():
                adjusted[output][block_slice] = values[:num_kept]
            for output, values in by_output(block.protocol).items():
                protocol.setdefault(output, np.empty(num_sequences))[block_slice] = values[:num_kept]
            for output, values in by_output(block.unadjusted).items():
                moments[output] = moments[output].add(values[:num_kept])
            for output, values in by_output(block.worse_than_zero).items():
                num_worse[output] += int(values[:num_kept].sum())
        return cls(
            problem=problem,
            num_sequences=num_sequences,
            key=key,
            adjusted_losses=adjusted,
            unadjusted_losses={output: moment.estimate() for output, moment in moments.items()},
            worse_shares={output: count / num_sequences for output, count in num_worse.items()},
            protocol_losses=protocol,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the predictors, in the order in which they were given."""
        return tuple(dict.fromkeys(name for name, _ in self.adjusted_losses))

    def layers(self, name: str | None = None) -> tuple[int, ...]:
        """Return the layers that were measured; none where only the predictor's own prediction was."""
        name = self._name(name)
        return tuple(layer for other, layer in self.adjusted_losses if other == name and layer is not None)

    def losses(self, name: str | None = None, layer: int | None = None) -> Float[np.ndarray, " n"]:
        """Return the adjusted loss of every sequence."""
        return self._at(self.adjusted_losses, name, layer)

    def adjusted(self, name: str | None = None, layer: int | None = None) -> Estimate:
        """Return the adjusted loss: the mean of `½‖w − w_σ‖²`."""
        return Estimate.from_values(self.losses(name, layer))

    def unadjusted(self, name: str | None = None, layer: int | None = None) -> Estimate:
        """Return the loss before the oracle's is subtracted; `oracle` is the oracle's own."""
        if name == ORACLE:
            return self.unadjusted_losses[ORACLE, None]
        return self._at(self.unadjusted_losses, name, layer)

    def worse_than_zero(self, name: str | None = None, layer: int | None = None) -> float:
        """Return the share of sequences on which predicting zero would have been better."""
        return self._at(self.worse_shares, name, layer)

    def tail(self, name: str | None = None, layer: int | None = None) -> Tail:
        """Return the tail of the adjusted loss."""
        return Tail.from_values(self.losses(name, layer), self.worse_than_zero(name, layer))

    def num_exploded(self, name: str | None = None, layer: int | None = None) -> int:
        """Return the number of sequences whose adjusted loss is above 5d or not finite."""
        return int(np.sum(is_exploded(self.losses(name, layer), self.problem.dim)))

    def robust_summary(self, name: str | None = None, layer: int | None = None) -> Row:
        """Return what few sequences do not dominate, beside the worst of them and the number of exploded ones.

        The columns are the median over sequences and the median of the means of ten parts, each with its error,
        the largest loss, and the number of exploded sequences of all.
        """
        losses = self.losses(name, layer)
        median, of_means = Estimate.median(losses), Estimate.median_of_means(losses)
        return {
            "median": median.mean,
            "median_error": median.standard_error,
            "median_of_means": of_means.mean,
            "median_of_means_error": of_means.standard_error,
            "worst": float(losses.max()),
            "num_exploded": self.num_exploded(name, layer),
            "num_sequences": self.num_sequences,
        }

    def difference(
        self, name: str, other: str, *, layer: int | None = None, other_layer: int | None = None
    ) -> Estimate:
        """Return the paired difference of adjusted losses, negative where `name` is better than `other`."""
        return Estimate.from_values(self.differences(name, other, layer=layer, other_layer=other_layer))

    def differences(
        self, name: str, other: str, *, layer: int | None = None, other_layer: int | None = None
    ) -> Float[np.ndarray, " n"]:
        """Return the difference of adjusted losses on every sequence, NaN where both are infinite."""
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            return self.losses(name, layer) - self.losses(other, other_layer)

    def protocol_means(
        self, name: str | None = None, layer: int | None = None, *, num_sequences: int = PROTOCOL_SEQUENCES
    ) -> Float[np.ndarray, " repetitions"]:
        """Return the means of the paper's protocol on the first `num_sequences` sequences, the next, and so on."""
        values = self._protocol_values(name, layer)
        num_repetitions = len(values) // num_sequences
        if not num_repetitions:
            raise ValueError(f"`num_sequences` must be at most {len(values):,}, the number measured.")
        return values[: num_repetitions * num_sequences].reshape(num_repetitions, -1).mean(axis=1)

    def protocol(self, name: str | None = None, layer: int | None = None) -> ProtocolQuantiles:
        """Return quantiles of the paper's protocol, a mean over 100,000 sequences with one sampled query each.

        They are those of its repetitions, or of the normal law where there are fewer than five. With them is the
        largest share of ten sequences in a repetition, measured by the loss that is exact in the query, since
        terms of the protocol's sum can cancel.
        """
        values, losses = self._protocol_values(name, layer), self.losses(name, layer)
        num_repetitions = len(values) // PROTOCOL_SEQUENCES
        if num_repetitions >= _ENOUGH:
            repetitions = losses[: num_repetitions * PROTOCOL_SEQUENCES].reshape(num_repetitions, -1)
            share = share_of_largest(repetitions, _NUM_LARGEST)
            return ProtocolQuantiles.from_means(self.protocol_means(name, layer), top_share=share)
        # Of fewer sequences the same part, at least one.
        share = share_of_largest(losses, max(len(losses) * _NUM_LARGEST // PROTOCOL_SEQUENCES, 1))
        return ProtocolQuantiles.from_losses(values, num_sequences=PROTOCOL_SEQUENCES, top_share=share)

    def to_rows(self) -> list[Row]:
        """Return a row for every predictor and layer."""
        return [
            {"method": name, "layers": layer, "noise": str(self.problem.noise)}
            | self.adjusted(name, layer).as_adjusted_loss()
            for name, layer in self.adjusted_losses
        ]

    def __repr__(self) -> str:
        losses = ", ".join(f"{name}={self.adjusted(name)}" for name in self.names)
        key = self.key if isinstance(self.key, int) else f"key{jax.random.key_data(self.key).tolist()}"
        return f"Comparison({losses}, num_sequences={self.num_sequences}, key={key})"

    def _protocol_values(self, name: str | None, layer: int | None) -> Float[np.ndarray, " n"]:
        if not self.protocol_losses:
            raise ValueError("The paper's protocol was not measured: call `evaluate` with `protocol=True`.")
        return self._at(self.protocol_losses, name, layer)

    def _name(self, name: str | None) -> str:
        if name is None and len(self.names) == 1:
            return self.names[0]
        if name not in self.names:
            raise ValueError(f"`name` must be one of {', '.join(self.names)}, got {name!r}.")
        return name

    def _at(self, values: Mapping[Output, Value], name: str | None, layer: int | None) -> Value:
        """Return what is known of a predictor after a layer, by default the last one."""
        name = self._name(name)
        layers = self.layers(name)
        if layer is None:
            return values[name, layers[-1] if layers else None]
        if layer not in layers:
            allowed = f"from 1 to {layers[-1]}" if layers else "None, unless `evaluate` has `every_layer=True`"
            raise ValueError(f"`layer` of {name!r} must be {allowed}, got {layer!r}.")
        return values[name, layer]
