"""Batches and pools of training sequences: problem × objective × perturbation."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

from lintra.baselines.bayes import Bayes
from lintra.baselines.oracle import oracle_weights
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import Truth, sample_statistics
from lintra.training.batch import Batch, Tree, cast
from lintra.training.perturbations import UNPERTURBED, AbstractPerturbation

BLOCK = 8192
"""Number of sequences drawn at once, so that a pool of any size needs little memory besides itself."""


def sample_batch(
    problem: NoisyRegression,
    *,
    objective: str,
    num_sequences: int,
    perturbation: AbstractPerturbation = UNPERTURBED,
    dtype: DTypeLike = float,
    key: Key[Array, ""],
) -> Batch:
    """Draw sequences for an objective.

    Args:
        problem: The regression problem.
        objective: `query`, `truth` or `bayes`; `oracle` has the oracle's weights as targets.
        num_sequences: Number of sequences.
        perturbation: How sequences are changed after they are drawn. The square root of their importance is part
            of the batch's `sqrt_metric`. Default: not changed.
        dtype: Precision in which they are drawn. Default: 64 bits.
        key: Randomness.

    >>> batch = sample_batch(NoisyRegression(), objective="truth", num_sequences=5, key=jax.random.key(0))
    >>> batch.target.shape
    (5, 10)
    """
    batch, log_importance = sample_with_importance(
        problem, objective=objective, num_sequences=num_sequences, perturbation=perturbation, dtype=dtype, key=key
    )
    return batch if log_importance is None else batch.weighted(log_importance)


@partial(jax.jit, static_argnames=("objective", "num_sequences", "dtype"))
def sample_with_importance(
    problem: NoisyRegression,
    *,
    objective: str,
    num_sequences: int,
    perturbation: AbstractPerturbation = UNPERTURBED,
    dtype: DTypeLike = float,
    key: Key[Array, ""],
) -> tuple[Batch, Float[Array, " b"] | None]:
    """Draw sequences as `sample_batch` does, and the logarithm of their importance, which is not in the batch."""
    data_key, query_key, perturbation_key = perturbation.split(key)
    stats, truth = sample_statistics(problem, (num_sequences,), dtype, key=data_key)
    stats, log_importance = perturbation(problem, stats, truth, perturbation_key)
    target = targets(problem, objective if perturbation.keeps_prior else "bayes", stats, truth)
    if objective == "query":  # one direction for each sequence, its query
        root = problem.covariance_root().astype(dtype)  # Λ = root rootᵀ
        queries = jax.random.normal(query_key, (num_sequences, problem.dim), dtype) @ root.T
        sqrt_metric = queries[:, None, :]
    else:
        sqrt_metric = _average_over_queries(problem, num_sequences, dtype)
    return Batch(stats.gram / problem.num_examples, target, sqrt_metric), log_importance


def targets(problem: NoisyRegression, objective: str, stats: GramStatistics, truth: Truth) -> Float[Array, "b d"]:
    """The weights that a model is compared with."""
    if objective == "bayes":
        return Bayes(problem.noise).weights(stats)
    return oracle_weights(stats, truth.noise_std) if objective == "oracle" else truth.weights


def sample_pool(
    problem: NoisyRegression,
    *,
    objective: str,
    num_sequences: int,
    perturbation: AbstractPerturbation = UNPERTURBED,
    dtype: DTypeLike = float,
    key: Key[Array, ""],
) -> Batch:
    """Draw many sequences that are used again and again, in blocks and in 64 bits, then cast to `dtype`.

    The arguments are those of `sample_batch`.
    """

    def block(key: Key[Array, ""]) -> Batch:
        if objective == "bayes" and perturbation is UNPERTURBED:
            return cast(sample_with_bayes(problem, key)[0], dtype)
        settings = {"objective": objective, "num_sequences": BLOCK, "perturbation": perturbation}
        return cast(sample_batch(problem, **settings, key=key), dtype)

    return in_blocks(block, key, num_sequences)


@jax.jit
def sample_with_bayes(problem: NoisyRegression, key: Key[Array, ""]) -> tuple[Batch, Float[Array, "b d"]]:
    """Draw one block with the Bayes predictor's weights as targets, and the oracle's weights beside them.

    One program serves pools and validation sets, since it takes long to compile.
    """
    stats, truth = sample_statistics(problem, (BLOCK,), key=key)
    sqrt_metric = _average_over_queries(problem, BLOCK, float)
    batch = Batch(stats.gram / problem.num_examples, targets(problem, "bayes", stats, truth), sqrt_metric)
    return batch, oracle_weights(stats, truth.noise_std)


def _average_over_queries(
    problem: NoisyRegression, num_sequences: int, dtype: DTypeLike
) -> Float[Array, "b d d"] | None:
    """The root of Λ for every sequence, with which the loss is the average over queries. `None`: Λ = I."""
    if problem.is_isotropic:
        return None
    root = problem.covariance_root().astype(dtype)  # Λ = root rootᵀ
    return jnp.broadcast_to(root.T, (num_sequences, problem.dim, problem.dim))


def in_blocks(block: Callable[[Key[Array, ""]], Tree], key: Key[Array, ""], num_sequences: int) -> Tree:
    """Draw sequences block by block, each from its own key."""
    blocks = [block(key) for key in jax.random.split(key, -(-num_sequences // BLOCK))]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:num_sequences], *blocks)
