"""Adjusted loss of predictors on the same fresh sequences.

Given the data and σ, the true weights have mean w_σ, the oracle's ridge solution. So the loss minus the oracle's
loss is exactly `½ E‖w − w_σ‖²`, without the noise that the two losses have in common.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from lintra import arguments
from lintra.arguments import KeyLike
from lintra.baselines.oracle import oracle_weights
from lintra.evaluation.blocks import BlockLosses, block_size, map_blocks
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.named_predictors import ORACLE, Predictors, resolve_predictors
from lintra.kernel.precision import in_64_bits
from lintra.predictor import AbstractLayered, AbstractPredictor
from lintra.problem.loss import half_square, overflow_to_inf
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks, memory
from lintra.runtime.progress import SILENT, Progress
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics


def evaluate(
    predictors: Predictors,
    problem: NoisyRegression | None = None,
    *,
    num_sequences: int = 100_000,
    every_layer: bool = False,
    protocol: bool = False,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> Comparison:
    """Measure one predictor or several on the same fresh sequences.

    Args:
        predictors: A predictor, the name of a baseline (`bayes`) or of a model (`full-7-uniform(0,5)`, or a file),
            a sequence of these, or a dictionary from names to these.
        problem: Where the sequences come from. `None` (default): the problem on which the models that are given by
            name were trained.
        num_sequences: Number of sequences. Memory is eight bytes for each sequence and predictor.
        every_layer: Whether to measure the prediction after every layer, of predictors that come in layers.
        protocol: Whether to measure by the paper's protocol as well, which samples one query for each sequence and
            subtracts two squared errors. It has the same mean and more noise.
        key: Randomness, a whole number or a key. The same key gives the same sequences for any predictors.
        progress: Told after every block of sequences.

    Returns:
        The losses, by name and layer.

    Raises:
        ValueError: If the problem is not known, a name is not, or the losses do not fit into memory.
        TypeError: If something is not a predictor.

    Examples:
        >>> losses = evaluate(["bayes", "ada-ridge"], NoisyRegression(noise="choice(1,3)"))
        >>> bool(abs(losses.adjusted("bayes").mean - 0.0057) < 4 * losses.adjusted("bayes").standard_error)
        True
        >>> evaluate("full-7-uniform(0,5)", num_sequences=1000).adjusted()
        Estimate(mean=0.0..., standard_error=0.00...)
    """
    forks.check_not_forked()
    total = arguments.whole_number("num_sequences", num_sequences)
    with in_64_bits():
        measured, problem = resolve_predictors(predictors, problem, key=key)
        layers = _layers(measured, problem) if every_layer else dict.fromkeys(measured, (None,))
        require_memory(problem, total, sum(map(len, layers.values())) * (2 if protocol else 1))
        block = partial(block_losses, measured, problem, every_layer=every_layer, protocol=protocol)
        num_blocks = -(-total // block_size(problem.dim))
        blocks = map_blocks(block, num_blocks, arguments.random_key(key), progress)
        return Comparison.from_blocks(blocks, layers, problem, num_sequences=total, key=key)


def require_memory(problem: NoisyRegression, num_sequences: int, num_kept: int) -> None:
    """Reject a measurement that cannot fit into memory.

    Args:
        problem: Where the sequences come from.
        num_sequences: Number of sequences.
        num_kept: Number of losses that are stored for each of them.

    Raises:
        ValueError: With the argument at fault, and the memory that it would need.
    """
    memory.require_losses(arguments.whole_number("num_sequences", num_sequences), num_kept)
    memory.require_sampling(problem.dim, problem.num_examples, block_size(problem.dim))


@partial(jax.jit, static_argnames=("every_layer", "protocol"))
def block_losses(
    predictors: dict[str, AbstractPredictor],
    problem: NoisyRegression,
    key: Key[Array, ""],
    *,
    every_layer: bool = False,
    protocol: bool = False,
) -> BlockLosses:
    """Compute the losses of one block of sequences, as one compiled program."""
    size = block_size(problem.dim)
    sequence_key, query_key = jax.random.split(key)
    stats, truth = sample_statistics(problem, (size,), key=sequence_key)
    oracle = oracle_weights(stats, truth.noise_std)
    # Weights have shape (layers, b, d), with one layer where only the predictor's own prediction is measured.
    weights = {name: _weights(predictor, stats, every_layer) for name, predictor in predictors.items()}
    exact = partial(half_square, covariance=problem.covariance)
    query = jax.random.normal(query_key, (size, problem.dim)) @ problem.covariance_root().T

    def at_query(difference: Float[Array, "layers b d"]) -> Float[Array, "layers b"]:
        return 0.5 * jnp.sum(difference * query, axis=-1) ** 2

    def printed(w: Float[Array, "layers b d"]) -> Float[Array, "layers b"]:
        # Eq. (7) minus the oracle's, as the paper's Table 1 has it.
        return at_query(w - truth.weights) - at_query((oracle - truth.weights)[None])

    adjusted = {name: exact(w - oracle) for name, w in weights.items()}
    unadjusted = {name: exact(w - truth.weights) for name, w in (weights | {ORACLE: oracle[None]}).items()}
    # Written so that a loss that is NaN counts as worse.
    worse_than_zero = {name: ~(loss <= exact(oracle)) for name, loss in adjusted.items()}
    return BlockLosses(
        adjusted=overflow_to_inf(adjusted),
        unadjusted=overflow_to_inf(unadjusted),
        protocol=overflow_to_inf({name: printed(w) for name, w in weights.items()} if protocol else {}),
        worse_than_zero=worse_than_zero,
    )


def _weights(predictor: AbstractPredictor, stats: GramStatistics, every_layer: bool) -> Float[Array, "layers b d"]:
    if every_layer and isinstance(predictor, AbstractLayered):
        return jnp.moveaxis(predictor.layer_weights(stats), -2, 0)
    return predictor.weights(stats)[None]


def _layers(
    predictors: dict[str, AbstractPredictor], problem: NoisyRegression
) -> dict[str, tuple[int | None, ...]]:
    """Return the numbers of the layers by name, `(None,)` for predictors that do not come in layers."""
    stats = jax.eval_shape(lambda: sample_statistics(problem, key=jax.random.key(0)))[0]
    layers: dict[str, tuple[int | None, ...]] = {}
    for name, predictor in predictors.items():
        if isinstance(predictor, AbstractLayered):
            layers[name] = tuple(range(1, jax.eval_shape(predictor.layer_weights, stats).shape[0] + 1))
        else:
            layers[name] = (None,)
    if all(numbers == (None,) for numbers in layers.values()):
        kinds = ", ".join(type(predictor).__name__ for predictor in predictors.values())
        raise ValueError(f"`predictors` must come in layers for `every_layer=True`, got {kinds}.")
    return layers
