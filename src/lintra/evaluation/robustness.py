"""Models on contexts that are unlike those of training: long examples, large or correlated inputs, an outlier."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import arguments
from lintra.arguments import KeyLike, random_key
from lintra.baselines.oracle import oracle_weights
from lintra.display import Row
from lintra.evaluation.blocks import block_size, fold_in_words, map_blocks
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.problem.loss import half_square, overflow_to_inf
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import Truth, sample_data
from lintra.zoo.collection import Zoo

NUM_CONTEXTS = 20_000
"""Number of contexts of a kind."""
_EXPLODED = 5.0  # loss, for each input, from which on a context is exploded; zero weights have ½ on average

Inputs = Float[Array, "b n d"]


@dataclass(frozen=True)
class ContextKind:
    """A kind of contexts.

    Attributes:
        label: What figures and tables call it.
        change_inputs: Maps inputs of the problem and a key to the kind's inputs. Labels are made from these.
        label_shift: Added to the first label.
    """

    label: str
    change_inputs: Callable[[Inputs, Key[Array, ""]], Inputs] = lambda x, key: x
    label_shift: float = 0.0


def _lengthen_first(factor: float, x: Inputs, key: Key[Array, ""]) -> Inputs:
    del key
    return x.at[:, 0].multiply(factor)


def _correlate(correlation: float, x: Inputs, key: Key[Array, ""]) -> Inputs:
    del key
    dim = x.shape[-1]
    return x @ jnp.linalg.cholesky(correlation + (1 - correlation) * jnp.eye(dim)).T


def _divide_by_chi(x: Inputs, key: Key[Array, ""]) -> Inputs:
    """Make inputs with Student's t distribution, `z / √(χ²/3)`, χ² a sum of three squares of normal numbers."""
    squares = jax.random.normal(key, (*x.shape, 3)) ** 2
    return x / jnp.sqrt(squares.mean(axis=-1))


CONTEXT_KINDS: dict[str, ContextKind] = {
    "own": ContextKind("own prior"),
    "leverage-3": ContextKind("one example × 3", partial(_lengthen_first, 3.0)),
    "leverage-10": ContextKind("one example × 10", partial(_lengthen_first, 10.0)),
    "inputs-3": ContextKind("inputs × 3", lambda x, key: 3.0 * x),
    "correlation-0.9": ContextKind("correlation 0.9", partial(_correlate, 0.9)),
    "t3": ContextKind("t₃ inputs", _divide_by_chi),
    "label-30": ContextKind("one label + 30", label_shift=30.0),
}
"""Kinds of contexts by name. The first is the problem itself."""


def sample_contexts(
    problem: NoisyRegression, kind: str, num_contexts: int, *, key: KeyLike = 0
) -> tuple[GramStatistics, Truth]:
    """Draw contexts of a kind.

    Args:
        problem: Weights, noise and, before they are changed, inputs come from it.
        kind: A name of `CONTEXT_KINDS`.
        num_contexts: Number of contexts.
        key: Randomness, a whole number or a key. Default: 0.

    Returns:
        The contexts, and the weights and noise levels behind them.

    >>> stats, truth = sample_contexts(NoisyRegression(), "leverage-10", 3)
    >>> stats.gram.shape, truth.weights.shape
    ((3, 11, 11), (3, 10))
    """
    chosen = CONTEXT_KINDS[arguments.one_of("kind", kind, CONTEXT_KINDS)]
    data_key, change_key = jax.random.split(random_key(key))
    x, y, truth = sample_data(problem, (num_contexts,), key=data_key)
    noise = y - jnp.einsum("bnd,bd->bn", x, truth.weights)
    x = chosen.change_inputs(x, change_key)
    y = jnp.einsum("bnd,bd->bn", x, truth.weights) + noise
    return GramStatistics.from_data(x, y.at[:, 0].add(chosen.label_shift)), truth


@jax.jit
def is_exploded(losses: Float[Array, "*n"], dim: int) -> Array:
    """Whether a context is exploded: its loss `½‖w − w_τ‖²` is above 5d or not finite."""
    return ~(losses <= _EXPLODED * dim)


# Contexts and weights are programs of their own, so that a kind is compiled once for all models, and a model once
# for all kinds.
_sample = jax.jit(sample_contexts, static_argnums=(1, 2))


def _block_losses(
    models: dict[str, AbstractModel], problem: NoisyRegression, kind: str, key: Key[Array, ""]
) -> dict[str, Float[Array, " b"]]:
    """`½‖w − w_τ‖²` of a block of contexts, by model and for the oracle."""
    stats, truth = _sample(problem, kind, block_size(problem.dim), key=key)
    weights = {name: model.weights(stats) for name, model in models.items()}
    weights["oracle"] = oracle_weights(stats, truth.noise_std)
    return {name: overflow_to_inf(half_square(w - truth.weights)) for name, w in weights.items()}


@dataclass(frozen=True)
class Robustness(AbstractMeasurement[list[Row]]):
    """One model, as printed and damped, on contexts of every kind.

    A row has the share of contexts on which the model explodes, that is `½‖w − w_τ‖²` is above 5d or not finite,
    the median and mean of this loss, and the oracle's. The error of a median is half the distance of the values
    that are √n/2 ranks below and above it. Means over an infinite loss are infinite.

    Attributes:
        name: Name of the model.
        num_contexts: Number of contexts of each kind.
    """

    name: str
    num_contexts: int = NUM_CONTEXTS

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure all kinds; `num_sequences` has no effect."""
        del num_sequences
        card, printed = zoo.card(self.name), zoo.load(self.name)
        problem = NoisyRegression(card["dim"], card["context"], card["noise"])
        models = {"printed": printed, "damped": printed.with_damping(printed.stored_damping or problem)}
        rows: list[Row] = []
        for kind in CONTEXT_KINDS:
            own_key = fold_in_words(random_key(key), "measurements", "robustness", card["noise"], kind)
            losses = contexts_losses(models, problem, kind, self.num_contexts, key=own_key, progress=progress)
            oracle = _summary(losses.pop("oracle"), problem.dim)
            for name, values in losses.items():
                sizes = {"method": card["family"], "layers": card["layers"], "noise": card["noise"]}
                row = sizes | {"contexts": kind, "damped": name == "damped"} | _summary(values, problem.dim)
                rows.append(row | {f"oracle_{column}": value for column, value in oracle.items()})
        return rows


def contexts_losses(
    models: dict[str, AbstractModel],
    problem: NoisyRegression,
    kind: str,
    num_contexts: int,
    *,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> dict[str, Float[np.ndarray, " n"]]:
    """Measure `½‖w − w_τ‖²` of models on the same contexts of a kind.

    Args:
        models: Models by name; `oracle` is not one of the names.
        problem: The problem that contexts are made from.
        kind: A name of `CONTEXT_KINDS`.
        num_contexts: Number of contexts.
        key: Randomness, a whole number or a key. Default: 0.
        progress: Told after every block of contexts.

    Returns:
        The losses by name, and those of ridge regression with the true σ as `oracle`.
    """
    with in_64_bits():
        num_blocks = -(-arguments.whole_number("num_contexts", num_contexts) // block_size(problem.dim))
        block = partial(_block_losses, models, problem, kind)
        blocks = [losses for _, losses in map_blocks(block, num_blocks, random_key(key), progress)]
    names = (*models, "oracle")
    return {name: np.concatenate([losses[name] for losses in blocks])[:num_contexts] for name in names}


def _summary(losses: Float[np.ndarray, " n"], dim: int) -> Row:
    count, ordered = len(losses), np.sort(losses)
    share = float(np.mean(np.asarray(is_exploded(losses, dim))))
    mean = Estimate.from_values(losses)
    ranks = count / 2 + np.array([-0.5, 0.5]) * count**0.5
    low, high = ordered[np.clip(ranks.astype(int), 0, count - 1)]
    with np.errstate(invalid="ignore"):
        median_error = float((high - low) / 2)
    return {
        "exploded": share,
        "exploded_error": (share * (1 - share) / count) ** 0.5,
        "median": float(np.median(ordered)),
        "median_error": median_error,
        "mean": mean.mean,
        "mean_error": mean.standard_error,
        "worst": float(ordered[-1]),
    }
