"""The cases: each is our way and a reference, ready to run."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from lintra.baselines.oracle import oracle_weights
from lintra.kernel import library
from lintra.models import tokens
from lintra.models.base import AbstractModel
from lintra.models.families import FAMILIES
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics

Sides = tuple[Callable[[], Any], Callable[[], Any]]
"""Our way and the reference, each ready to run."""


def evaluation_case() -> Sides:
    """Measure FULL with 7 layers in float64 on the same 100,000 sequences, from examples to mean adjusted loss.

    Ours collects the statistics and averages the query out; the reference moves every token, Eq. (3).
    """
    problem, key = NoisyRegression(), jax.random.key(0)
    model = Full.random(7, scale=0.1, key=key)
    P, Q = map(jnp.asarray, model.matrices())
    x, y, truth = sample_data(problem, key, (100_000,))
    query = jax.random.normal(key, (100_000, problem.dim))

    def oracle_of(x: Array, y: Array) -> tuple[GramStatistics, Array]:
        stats = GramStatistics.from_data(x, y)
        return stats, oracle_weights(stats, truth.noise_std)

    def ours(x: Array, y: Array) -> Array:
        stats, oracle = oracle_of(x, y)
        return half_square(model.weights(stats) - oracle).mean()

    def reference(x: Array, y: Array) -> Array:
        label = jnp.sum(truth.weights * query, axis=-1)
        prediction = jax.vmap(lambda *data: -tokens.forward(P, Q, *data)[-1][-1, -1])(x, y, query)
        oracle = jnp.sum(oracle_of(x, y)[1] * query, axis=-1)
        return 0.5 * jnp.mean((prediction - label) ** 2 - (oracle - label) ** 2)

    return partial(jax.jit(ours), x, y), partial(jax.jit(reference), x, y)


def gradient_case(family: str, num_layers: int, fresh: bool = False) -> Sides:
    """Loss and slope of one training step, batch 2,048, float32: ours, and tokens the way the field writes it.

    With `fresh` both sides draw their sequences at every step.
    """
    problem, key, batch = NoisyRegression(), jax.random.key(0), 2048
    model = random_model(family, num_layers, problem)
    matrices = tuple(jnp.asarray(matrix[:, 0]) for matrix in model.matrices())
    slope, reference = jax.value_and_grad(distance), jax.value_and_grad(_distance_of_tokens)
    if not fresh:
        data = jax.jit(partial(_tokens, problem, batch))(key)
        return gradient(family, num_layers, batch, problem), partial(jax.jit(reference), matrices, *data)
    step = jax.jit(lambda model, key: slope(model, *_statistics(problem, batch, key)))
    reference_step = jax.jit(lambda matrices, key: reference(matrices, *_tokens(problem, batch, key)))
    return partial(step, model, key), partial(reference_step, matrices, key)


def gradient(family: str, num_layers: int, batch: int, problem: NoisyRegression) -> Callable[[], Any]:
    """Our loss and slope of one training step, float32, on sequences drawn before; GD++ needs only eigenvalues."""
    model = random_model(family, num_layers, problem)
    gram, target = jax.jit(partial(_statistics, problem, batch))(jax.random.key(0))
    if not isinstance(model, GDPlusPlus):
        return partial(jax.jit(jax.value_and_grad(distance)), model, gram, target)

    def spectral(model: GDPlusPlus, eigenvalues: Array) -> Array:
        return model.spectral_loss(eigenvalues, 1 / batch, problem.noise.second_moment)

    eigenvalues = jnp.linalg.eigvalsh(gram[:, :-1, :-1]) * problem.context
    return partial(jax.jit(jax.value_and_grad(spectral)), model, eigenvalues)


def random_model(family: str, num_layers: int, problem: NoisyRegression) -> AbstractModel:
    """A model in float32, near zero as at the start of training."""
    size = {"dim": problem.dim, "context": problem.context}
    model = FAMILIES[family].random(num_layers, key=jax.random.key(0), **size)
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), model)


def distance(model: AbstractModel, gram: Array, target: Array) -> Array:
    """What training lowers."""
    return model.distance(gram, target)


def _statistics(problem: NoisyRegression, batch: int, key: Array) -> tuple[Array, Array]:
    stats, truth = sample_statistics(problem, key, (batch,), jnp.float32)
    return stats.gram / problem.context, truth.weights


def _tokens(problem: NoisyRegression, batch: int, key: Array) -> tuple[Array, Array]:
    """All tokens of a batch, the query last, and the query's label."""
    x, y, truth = sample_data(problem, key, (batch,), jnp.float32)
    query = jax.random.normal(key, (batch, 1, problem.dim), jnp.float32)
    context = jnp.concatenate([x, y[..., None]], axis=-1)
    token = jnp.concatenate([query, jnp.zeros((batch, 1, 1), jnp.float32)], axis=-1)
    return jnp.concatenate([context, token], axis=1), jnp.sum(truth.weights * query[:, 0], axis=-1)


def _distance_of_tokens(matrices: tuple[Array, ...], moved: Array, label: Array) -> Array:
    for p, q in zip(*matrices, strict=True):
        context = moved[:, :-1]
        scores = (moved @ q.T) @ jnp.swapaxes(context, -1, -2)
        moved = moved + scores @ context @ p.T
    return 0.5 * jnp.mean((-moved[:, -1, -1] - label) ** 2)


def threads_case() -> Sides:
    """Loss and slope of FULL with 7 layers, batch 4,096, on two threads, and on one."""
    step = gradient("full", 7, 4096, NoisyRegression())

    def on(num_threads: int) -> Any:
        library.limit_threads(num_threads)
        return step()

    return partial(on, 2), partial(on, 1)


def sgemm_case() -> Sides:
    """The arithmetic rate of the FULL kernel, 7 layers, against a product of two large matrices.

    The matrices are of a size whose product has as many multiply-adds, to 1 %, as 11 products of (d+1)³ a
    layer, so that the ratio of times is a ratio of rates. Larger matrices run a little faster.
    """
    ours = gradient("full", 7, 2048, NoisyRegression())
    matrix = jax.random.normal(jax.random.key(0), (592, 592), jnp.float32)  # 592³ = 11 · 11³ · 7 · 2048 / 1.01
    return ours, partial(jax.jit(lambda matrix: matrix @ matrix), matrix)


def sampling_case() -> Sides:
    """Draw the statistics of 8,192 sequences with a million examples each, and with twenty."""
    key = jax.random.key(0)
    draw = jax.jit(lambda problem: sample_statistics(problem, key, (8192,)))
    return (
        partial(draw, NoisyRegression(context=1_000_000)),
        partial(draw, NoisyRegression(context=20)),
    )


CASES: dict[str, Callable[[], Sides]] = {
    "evaluate-full-7": evaluation_case,
    "sample-1000000": sampling_case,
    "full-4": partial(gradient_case, "full", 4),
    "full-7": partial(gradient_case, "full", 7),
    "diag-7": partial(gradient_case, "diag", 7),
    "gd++-7": partial(gradient_case, "gd++", 7),
    "full-7-fresh": partial(gradient_case, "full", 7, fresh=True),
    "diag-7-fresh": partial(gradient_case, "diag", 7, fresh=True),
    "full-7-sgemm": sgemm_case,
    "full-7-threads": threads_case,
}

THREADED = {"full-7-threads"}
"""Cases that are about wall time on several threads; all others are about CPU time on one."""
