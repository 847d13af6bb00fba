"""Batches and pools of training sequences."""

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
from lintra.training.batch import Lesson, Tree, cast

LONGER = 1.1  # length of inputs that show what is rare
BLOCK = 8192  # sequences made at once, so that a pool of any size needs little memory besides itself


@partial(jax.jit, static_argnames=("objective", "size", "dtype"))
def sample_lesson(
    problem: NoisyRegression, key: Key[Array, ""], *, objective: str, size: int, dtype: DTypeLike = float
) -> Lesson:
    """Draw fresh sequences for an objective.

    >>> lesson = sample_lesson(NoisyRegression(), jax.random.key(0), objective="truth", size=5)
    >>> lesson.target.shape
    (5, 10)
    """
    sequence_key, query_key = jax.random.split(key)
    stats, truth = sample_statistics(problem, sequence_key, (size,), dtype)
    target = Bayes(problem.noise).weights(stats) if objective == "bayes" else truth.weights
    root = problem.covariance_root().astype(dtype)
    probe = None
    if objective == "query":
        probe = (jax.random.normal(query_key, (size, problem.dim), dtype) @ root.T)[:, None, :]
    elif not problem.is_isotropic:
        probe = jnp.broadcast_to(root.T, (size, problem.dim, problem.dim))
    return Lesson(stats.gram / problem.context, target, probe)


def sample_pool(
    problem: NoisyRegression, key: Key[Array, ""], *, objective: str, size: int, dtype: DTypeLike = float
) -> Lesson:
    """Draw many sequences that will be used again and again; targets are computed in 64 bits."""

    def block(key: Key[Array, ""]) -> Lesson:
        if objective == "bayes":
            return cast(sample_with_bayes(problem, key)[0], dtype)
        return cast(sample_lesson(problem, key, objective=objective, size=BLOCK), dtype)

    return in_blocks(block, key, size)


@jax.jit
def sample_with_bayes(problem: NoisyRegression, key: Key[Array, ""]) -> tuple[Lesson, Float[Array, "b d"]]:
    """Draw 8,192 sequences with the Bayes predictor's weights as targets, and the oracle's weights beside them.

    One program serves pools and held-out sequences, since it takes long to compile.
    """
    stats, truth = sample_statistics(problem, key, (BLOCK,))
    return _with_bayes(problem, stats), oracle_weights(stats, truth.noise_std)


def sample_with_rare(problem: NoisyRegression, key: Key[Array, ""], *, objective: str, size: int) -> Lesson:
    """Draw sequences for a fit, half of them with inputs 1.1 times as long, weighted so that means stay the same.

    The weight of a sequence is its density over that of the mixture, which is never more than two; its root
    is part of the probe. Sequences too rare for a pool of the problem's own are seen in this one.
    """
    if not problem.is_isotropic:
        return sample_pool(problem, key, objective=objective, size=size)
    block = partial(_block_with_rare, problem, objective=objective)
    return in_blocks(block, key, size)


@partial(jax.jit, static_argnames="objective")
def _block_with_rare(problem: NoisyRegression, key: Key[Array, ""], *, objective: str) -> Lesson:
    data_key, query_key = jax.random.split(key)
    stats, truth = sample_statistics(problem, data_key, (BLOCK,))
    scale = jnp.where(jnp.arange(BLOCK) % 2 == 0, 1.0, LONGER)[:, None, None]
    ones = jnp.ones((BLOCK, 1))
    stats = stretched(stats, truth, scale * jnp.eye(problem.dim), ones, ones)
    trace = jnp.trace(stats.xx, axis1=-2, axis2=-1)
    log_ratio = 0.5 * (1 - LONGER**-2) * trace - problem.context * problem.dim * jnp.log(LONGER)  # long over plain
    root = jnp.exp(0.5 * (jnp.log(2.0) - jnp.logaddexp(0.0, log_ratio)))[:, None, None]
    target = truth.weights if objective != "bayes" else Bayes(problem.noise).weights(stats)
    probe = jnp.broadcast_to(jnp.eye(problem.dim), (BLOCK, problem.dim, problem.dim))
    if objective == "query":
        probe = jax.random.normal(query_key, (BLOCK, 1, problem.dim))
    return Lesson(stats.gram / problem.context, target, root * probe)


def sample_widened(
    problem: NoisyRegression, key: Key[Array, ""], *, objective: str, size: int, dtype: DTypeLike = float
) -> Lesson:
    """Draw sequences that are wider than the problem's, with the Bayes predictor's weights as targets.

    Inputs are up to 15 % longer and up to half as long again in one random direction, weights up to twice
    and noise up to one and a half times as large. Models that learn from a few of them stay calm on the
    rarest of the problem's own sequences. Whatever the objective, targets are those of the Bayes predictor,
    since the problem's prior says nothing here; a sampled query is added where the objective asks for one.
    """

    def block(key: Key[Array, ""]) -> Lesson:
        lesson = _widened(problem, key)
        if objective == "query":
            query = jax.random.normal(jax.random.fold_in(key, 1), (BLOCK, 1, problem.dim))
            lesson = Lesson(lesson.gram, lesson.target, query @ problem.covariance_root().T)
        return cast(lesson, dtype)

    return in_blocks(block, key, size)


@jax.jit
def _widened(problem: NoisyRegression, key: Key[Array, ""]) -> Lesson:
    data_key, *keys = jax.random.split(key, 6)
    longer, stretch, wide, loud = (
        jax.random.uniform(key, (BLOCK, 1), maxval=most)
        for key, most in zip(keys[:4], (0.15, 0.5, 1.0, 0.5), strict=True)
    )
    stats, truth = sample_statistics(problem, data_key, (BLOCK,))
    u = jax.random.normal(keys[4], (BLOCK, problem.dim))
    u = u / jnp.linalg.norm(u, axis=-1, keepdims=True)
    widen = (1 + longer[..., None]) * (jnp.eye(problem.dim) + stretch[..., None] * u[:, :, None] * u[:, None, :])
    return _with_bayes(problem, stretched(stats, truth, widen, 1 + wide, 1 + loud))


def stretched(
    stats: GramStatistics, truth: Truth, inputs: Float[Array, "b d d"], weights: Array, noise: Array
) -> GramStatistics:
    """The statistics of the same sequences with inputs `A x`, A symmetric, and weights and noise times factors."""
    explained = jnp.einsum("bij,bj->bi", stats.xx, truth.weights)
    with_noise = stats.xy - explained  # Xᵀξ
    noise_square = stats.yy - jnp.sum(truth.weights * (stats.xy + with_noise), axis=-1)  # ξᵀξ
    xx = inputs @ stats.xx @ inputs
    with_noise = noise * jnp.einsum("bij,bj->bi", inputs, with_noise)
    explained = jnp.einsum("bij,bj->bi", xx, weights * truth.weights)
    xy = explained + with_noise
    yy = jnp.sum(weights * truth.weights * (explained + 2 * with_noise), axis=-1) + noise[:, 0] ** 2 * noise_square
    top = jnp.concatenate([xx, xy[..., None]], axis=-1)
    bottom = jnp.concatenate([xy, yy[:, None]], axis=-1)[:, None, :]
    return GramStatistics(jnp.concatenate([top, bottom], axis=-2), stats.count)


def _with_bayes(problem: NoisyRegression, stats: GramStatistics) -> Lesson:
    target, probe, size = Bayes(problem.noise).weights(stats), None, stats.gram.shape[0]
    if not problem.is_isotropic:
        probe = jnp.broadcast_to(problem.covariance_root().T, (size, problem.dim, problem.dim))
    return Lesson(stats.gram / problem.context, target, probe)


def in_blocks(block: Callable[[Key[Array, ""]], Tree], key: Key[Array, ""], size: int) -> Tree:
    """Draw `size` sequences, a block of 8,192 at a time."""
    blocks = [block(key) for key in jax.random.split(key, -(-size // BLOCK))]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:size], *blocks)
