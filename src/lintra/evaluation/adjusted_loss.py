"""How good is it: the adjusted loss with its standard error, its tails, and paired comparisons.

Given the data and σ, the true weights have mean w_σ, the oracle's ridge solution. So the loss minus
the oracle's loss is exactly `½ E‖w − w_σ‖²`, without the noise that the two losses have in common.
Everything that is compared sees the same sequences.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from lintra import arguments
from lintra.baselines.oracle import oracle_weights
from lintra.evaluation.blocks import block_size, in_order
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Moments, Repeated
from lintra.predictor import AbstractLayered, AbstractPredictor
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks, memory
from lintra.runtime.progress import Track
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics

Losses = tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]
"""Of one block: adjusted and unadjusted losses, where predicting zero would have been better, and adjusted losses
by the paper's protocol."""


def evaluate(
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    *,
    num_sequences: int = 100_000,
    sampled_query: bool = False,
    protocol: bool = False,
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
        protocol: Measure the same sequences by the paper's protocol as well, see `Comparison.repeated`.
        key: Randomness.
        track: Shows progress.

    >>> from lintra.baselines import Bayes
    >>> problem = NoisyRegression(noise="choice(1,3)")
    >>> loss = evaluate({"bayes": Bayes(problem.noise)}, problem, key=jax.random.key(0)).adjusted("bayes")
    >>> bool(abs(loss.mean - 0.0057) < 4 * loss.standard_error)
    True
    """
    forks.check_not_forked()
    predictors = _check_predictors(predictors)
    kept = len(predictors) * (2 if protocol else 1)
    require_memory(problem, num_sequences, kept)
    block = partial(_measure, _final_weights, predictors, problem, sampled_query=sampled_query, protocol=protocol)
    return _collect(block, list(predictors), problem, num_sequences, key, track)


def evaluate_layers(
    predictors: AbstractLayered | Mapping[str, AbstractLayered],
    problem: NoisyRegression,
    *,
    num_sequences: int = 100_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> Comparison:
    """Measure a predictor after every one of its layers; the names are "1", "2", ….

    Several are measured on the same sequences, under the names "mine/1", "mine/2", ….
    """
    forks.check_not_forked()
    named = predictors if isinstance(predictors, Mapping) else {"": predictors}
    for predictor in named.values():
        if not isinstance(predictor, AbstractLayered):
            raise ValueError(f"`predictor` must come in layers, got {type(predictor).__name__}.")
    block = partial(_measure, _every_weights, dict(named), problem, sampled_query=False, protocol=False)
    stats = jax.eval_shape(lambda: sample_statistics(problem, key))[0]
    names = [
        _layer_name(name, layer)
        for name, predictor in named.items()
        for layer in range(jax.eval_shape(predictor.layer_weights, stats).shape[0])
    ]
    require_memory(problem, num_sequences, len(names))
    return _collect(block, names, problem, num_sequences, key, track)


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
    forks.check_not_forked()
    count = arguments.whole_number("num_repetitions", num_repetitions)
    memory.require_repetitions(count, len(predictors))
    means: dict[str, list[float]] = {name: [] for name in predictors}
    for repetition_key in jax.random.split(key, num_repetitions):
        comparison = evaluate(
            predictors, problem, num_sequences=num_sequences, sampled_query=True, key=repetition_key, track=track
        )
        for name in predictors:
            means[name].append(comparison.adjusted(name).mean)
    return {name: Repeated(np.asarray(values)) for name, values in means.items()}


def require_memory(problem: NoisyRegression, num_sequences: int, num_kept: int) -> None:
    """Reject a measurement that cannot fit into memory.

    Arguments:
        problem: Where the sequences come from.
        num_sequences: Number of sequences.
        num_kept: Losses that are kept for each of them.

    Raises:
        ValueError: With the argument at fault, and the memory that it would need.
    """
    memory.require_losses(arguments.whole_number("num_sequences", num_sequences), num_kept)
    memory.require_sampling(problem.dim, problem.context, block_size(problem.dim))


def _final_weights(predictors: dict[str, AbstractPredictor], stats: GramStatistics) -> dict[str, Array]:
    return {name: predictor.weights(stats) for name, predictor in predictors.items()}


def _every_weights(predictors: dict[str, AbstractLayered], stats: GramStatistics) -> dict[str, Array]:
    every = {name: predictor.layer_weights(stats) for name, predictor in predictors.items()}
    return {
        _layer_name(name, layer): weights[..., layer, :]
        for name, weights in every.items()
        for layer in range(weights.shape[-2])
    }


def _layer_name(name: str, layer: int) -> str:
    return f"{name}/{layer + 1}" if name else str(layer + 1)


@partial(jax.jit, static_argnums=0, static_argnames=("sampled_query", "protocol"))
def _measure(
    weigh: Callable[[Any, GramStatistics], dict[str, Array]],
    predictors: PyTree,
    problem: NoisyRegression,
    key: Key[Array, ""],
    *,
    sampled_query: bool,
    protocol: bool,
) -> Losses:
    size = block_size(problem.dim)
    sequence_key, query_key = jax.random.split(key)
    stats, truth = sample_statistics(problem, sequence_key, (size,))
    oracle = oracle_weights(stats, truth.noise_std)
    weights = weigh(predictors, stats)
    exact = partial(half_square, covariance=problem.covariance)
    query = jax.random.normal(query_key, (size, problem.dim)) @ problem.covariance_root().T

    def at_query(difference: Float[Array, "b d"]) -> Float[Array, " b"]:
        return 0.5 * jnp.sum(difference * query, axis=-1) ** 2

    def printed(w: Float[Array, "b d"]) -> Float[Array, " b"]:
        return at_query(w - truth.weights) - at_query(oracle - truth.weights)

    loss = at_query if sampled_query else exact
    adjusted = {name: printed(w) if sampled_query else exact(w - oracle) for name, w in weights.items()}
    repeated = {name: printed(w) for name, w in weights.items()} if protocol else {}
    unadjusted = {name: loss(w - truth.weights) for name, w in (weights | {"oracle": oracle}).items()}
    zero = half_square(oracle, problem.covariance)
    worse = {name: ~(half_square(w - oracle, problem.covariance) <= zero) for name, w in weights.items()}
    overflowed = partial(jax.tree.map, lambda value: jnp.where(jnp.isnan(value), jnp.inf, value))
    return overflowed(adjusted), overflowed(unadjusted), worse, overflowed(repeated)


def _check_predictors(predictors: Mapping[str, AbstractPredictor]) -> dict[str, AbstractPredictor]:
    if not isinstance(predictors, Mapping) or not all(
        isinstance(p, AbstractPredictor) for p in predictors.values()
    ):
        raise ValueError("`predictors` must be a dictionary from names to predictors, as in {'mine': model}.")
    if "oracle" in predictors:
        raise ValueError("`predictors` must not use the name 'oracle', which stands for ridge with the true σ.")
    return dict(predictors)


def _collect(
    block: Callable[[Key[Array, ""]], Losses],
    names: list[str],
    problem: NoisyRegression,
    num_sequences: int,
    key: Key[Array, ""],
    track: Track | None,
) -> Comparison:
    """Run as many blocks as are needed and put their losses together."""
    arguments.require_64_bits()
    total, size = arguments.whole_number("num_sequences", num_sequences), block_size(problem.dim)
    losses, protocol = {name: np.empty(total) for name in names}, {}
    moments = dict.fromkeys([*names, "oracle"], Moments())
    worse_counts = dict.fromkeys(names, 0)
    for index, (adjusted, unadjusted, worse, repeated) in in_order(block, -(-total // size), key, track):
        start, kept = index * size, min(size, total - index * size)
        for name in names:
            losses[name][start : start + kept] = adjusted[name][:kept]
            worse_counts[name] += int(worse[name][:kept].sum())
        for name, values in repeated.items():
            protocol.setdefault(name, np.empty(total))[start : start + kept] = values[:kept]
        for name, values in unadjusted.items():
            moments[name] = moments[name].add(values[:kept])
    unadjusted = {name: moment.estimate() for name, moment in moments.items()}
    worse_than_zero = {name: count / total for name, count in worse_counts.items()}
    return Comparison(losses, unadjusted, worse_than_zero, protocol)
