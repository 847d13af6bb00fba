"""How good is it: the adjusted loss with its standard error, its tails, and paired comparisons.

Given the data and σ, the true weights have mean w_σ, the oracle's ridge solution. So the loss minus
the oracle's loss is exactly `½ E‖w − w_σ‖²`, without the noise that the two losses have in common.
Everything that is compared sees the same sequences.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import checks
from lintra.baselines import oracle_weights
from lintra.losses import Comparison, Moments, Repeated
from lintra.noise import Fixed
from lintra.objective import half_square
from lintra.predictor import AbstractLayered, AbstractPredictor
from lintra.problem import NoisyRegression
from lintra.statistics import GramStatistics, sample_statistics

BLOCK = 8192
"""Sequences are drawn in blocks of this size, each from its own key, whatever number is asked for."""

Track = Callable[[Iterable[int], int], Iterable[int]]
"""Shows progress: wraps the block numbers, given how many there are."""


def evaluate(
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    *,
    num_sequences: int = 100_000,
    sampled_query: bool = False,
    key: Key[Array, ""],
    track: Track | None = None,
) -> Comparison:
    """Measure predictors on the same `num_sequences` fresh sequences.

    Arguments:
        predictors: What to measure, by name.
        problem: Where the sequences come from.
        num_sequences: How many; memory is eight bytes a sequence and predictor.
        sampled_query: The paper's own protocol, which samples a query and subtracts the two squared
            errors, in place of the exact average. Same mean, more noise.
        key: Randomness.
        track: Shows progress.

    >>> from lintra.baselines import Bayes
    >>> problem = NoisyRegression(noise="choice(1,3)")
    >>> loss = evaluate({"bayes": Bayes(problem.noise)}, problem, key=jax.random.key(0)).adjusted("bayes")
    >>> bool(abs(loss.mean - 0.0057) < 4 * loss.standard_error)
    True
    """
    predictors = dict(predictors)
    block = partial(_measure, _final_weights, predictors, problem, sampled_query=sampled_query)
    return _collect(block, num_sequences, key, track)


def evaluate_layers(
    predictor: AbstractLayered,
    problem: NoisyRegression,
    *,
    num_sequences: int = 100_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> Comparison:
    """Measure a predictor after every one of its layers; the names are "1", "2", …."""
    block = partial(_measure, _every_weights, predictor, problem, sampled_query=False)
    return _collect(block, num_sequences, key, track)


def profile(
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    noise_stds: Sequence[float],
    *,
    num_sequences: int = 100_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> list[Comparison]:
    """Measure predictors at each of the given noise levels, whatever the problem's prior is.

    The inputs, true weights and standardised noise are the same at every level.
    """
    levels = [NoisyRegression(problem.dim, problem.context, Fixed(std), problem.covariance) for std in noise_stds]
    return [evaluate(predictors, level, num_sequences=num_sequences, key=key, track=track) for level in levels]


def repeat_protocol(
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    *,
    num_repetitions: int = 20,
    num_sequences: int = 100_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> dict[str, Repeated]:
    """Repeat the paper's evaluation, `num_sequences` sequences with a sampled query, and keep the means."""
    checks.whole_number("num_repetitions", num_repetitions)
    means: dict[str, list[float]] = {name: [] for name in predictors}
    for repetition_key in jax.random.split(key, num_repetitions):
        comparison = evaluate(
            predictors, problem, num_sequences=num_sequences, sampled_query=True, key=repetition_key, track=track
        )
        for name in predictors:
            means[name].append(comparison.adjusted(name).mean)
    return {name: Repeated(np.asarray(values)) for name, values in means.items()}


def _final_weights(predictors: dict[str, AbstractPredictor], stats: GramStatistics) -> dict[str, Array]:
    return {name: predictor.weights(stats) for name, predictor in predictors.items()}


def _every_weights(predictor: AbstractLayered, stats: GramStatistics) -> dict[str, Array]:
    weights = predictor.layer_weights(stats)
    return {str(layer + 1): weights[..., layer, :] for layer in range(weights.shape[-2])}


@partial(jax.jit, static_argnums=0, static_argnames="sampled_query")
def _measure(weigh, predictors, problem: NoisyRegression, key: Key[Array, ""], *, sampled_query: bool):
    """Adjusted and unadjusted losses of one block, and where predicting zero would have been better."""
    sequence_key, query_key = jax.random.split(key)
    stats, truth = sample_statistics(problem, sequence_key, (BLOCK,))
    oracle = oracle_weights(stats, truth.noise_std)
    weights = weigh(predictors, stats)
    if sampled_query:
        query = jax.random.normal(query_key, (BLOCK, problem.dim)) @ problem.covariance_root().T

        def loss(difference: Float[Array, "b d"]) -> Float[Array, " b"]:
            return 0.5 * jnp.sum(difference * query, axis=-1) ** 2

        oracle_loss = loss(oracle - truth.weights)
        adjusted = {name: loss(w - truth.weights) - oracle_loss for name, w in weights.items()}
    else:
        loss = partial(half_square, covariance=problem.covariance)
        adjusted = {name: loss(w - oracle) for name, w in weights.items()}
    unadjusted = {name: loss(w - truth.weights) for name, w in (weights | {"oracle": oracle}).items()}
    zero = half_square(oracle, problem.covariance)
    worse = {name: ~(half_square(w - oracle, problem.covariance) <= zero) for name, w in weights.items()}
    return jax.tree.map(lambda value: jnp.where(jnp.isnan(value), jnp.inf, value), adjusted), unadjusted, worse


def _collect(block, num_sequences: int, key: Key[Array, ""], track: Track | None) -> Comparison:
    """Run as many blocks as are needed and put their losses together."""
    size = checks.whole_number("num_sequences", num_sequences)
    losses: dict[str, np.ndarray] = {}
    moments: dict[str, Moments] = {}
    worse_counts: dict[str, int] = {}
    for start, (adjusted, unadjusted, worse) in _blocks(block, size, key, track):
        kept = min(BLOCK, size - start)
        for name, values in adjusted.items():
            losses.setdefault(name, np.empty(size))[start : start + kept] = values[:kept]
            worse_counts[name] = worse_counts.get(name, 0) + int(worse[name][:kept].sum())
        for name, values in unadjusted.items():
            moments[name] = moments.get(name, Moments()).add(values[:kept])
    unadjusted = {name: total.estimate() for name, total in moments.items()}
    return Comparison(losses, unadjusted, {name: count / size for name, count in worse_counts.items()})


def _blocks(block, size: int, key: Key[Array, ""], track: Track | None) -> Iterator[tuple[int, tuple]]:
    """Blocks in order, with the next ones already under way."""
    count = -(-size // BLOCK)
    indices = range(count) if track is None else track(range(count), count)
    waiting: deque[tuple[int, tuple]] = deque()
    for index in indices:
        waiting.append((index * BLOCK, block(jax.random.fold_in(key, index))))
        if len(waiting) > 2:
            start, result = waiting.popleft()
            yield start, jax.tree.map(np.asarray, result)
    for start, result in waiting:
        yield start, jax.tree.map(np.asarray, result)
