"""Speed, measured side by side: each case is our way and a reference, interleaved in one run."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from lintra import tokens
from lintra.baselines import oracle_weights
from lintra.models import FAMILIES, Full, GDPlusPlus
from lintra.objective import diagonal_distance, full_distance, half_square
from lintra.problem import NoisyRegression
from lintra.statistics import GramStatistics, sample_data, sample_statistics

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

    For GD++ ours needs the eigenvalues of Σ alone. With `fresh` both sides draw their sequences at every step.
    """
    problem, key, batch = NoisyRegression(), jax.random.key(0), 2048
    model = FAMILIES[family].random(num_layers, key=key)
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), model)
    P, Q = (jnp.asarray(matrix[:, 0]) for matrix in model.matrices())

    def statistics(key: Array) -> tuple[Array, Array]:
        stats, truth = sample_statistics(problem, key, (batch,), jnp.float32)
        return stats.gram / problem.context, truth.weights

    def ours(model: PyTree, gram: Array, target: Array) -> Array:
        if isinstance(model, Full):
            return full_distance(model.p, model.q, gram, target)
        return diagonal_distance(model.omega, gram, target)

    def spectral(model: GDPlusPlus, eigenvalues: Array) -> Array:
        return model.spectral_loss(eigenvalues, 1 / batch, problem.noise.second_moment)

    def examples(key: Array) -> tuple[Array, Array]:
        x, y, truth = sample_data(problem, key, (batch,), jnp.float32)
        query = jax.random.normal(key, (batch, 1, problem.dim), jnp.float32)
        context = jnp.concatenate([x, y[..., None]], axis=-1)
        token = jnp.concatenate([query, jnp.zeros((batch, 1, 1), jnp.float32)], axis=-1)
        return jnp.concatenate([context, token], axis=1), jnp.sum(truth.weights * query[:, 0], axis=-1)

    def reference(matrices: tuple[Array, Array], tokens: Array, label: Array) -> Array:
        for p, q in zip(*matrices, strict=True):
            context = tokens[:, :-1]
            scores = (tokens @ q.T) @ jnp.swapaxes(context, -1, -2)
            tokens = tokens + scores @ context @ p.T
        return 0.5 * jnp.mean((-tokens[:, -1, -1] - label) ** 2)

    slope, reference_slope = jax.value_and_grad(ours), jax.value_and_grad(reference)
    if fresh:
        step = jax.jit(lambda model, key: slope(model, *statistics(key)))
        reference_step = jax.jit(lambda matrices, key: reference_slope(matrices, *examples(key)))
        return partial(step, model, key), partial(reference_step, (P, Q), key)
    reference_side = partial(jax.jit(reference_slope), (P, Q), *jax.jit(examples)(key))
    if isinstance(model, GDPlusPlus):
        eigenvalues = jnp.linalg.eigvalsh(jax.jit(statistics)(key)[0][:, :-1, :-1]) * problem.context
        return partial(jax.jit(jax.value_and_grad(spectral)), model, eigenvalues), reference_side
    return partial(jax.jit(slope), model, *jax.jit(statistics)(key)), reference_side


def sgemm_case() -> Sides:
    """The arithmetic rate of the FULL kernel, 7 layers, against a product of two large matrices.

    The matrices are of a size whose product has as many multiply-adds, to 1 %, as 11 products of (d+1)³ a
    layer, so that the ratio of times is a ratio of rates. Larger matrices run a little faster.
    """
    ours, _ = gradient_case("full", 7)
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
}


def run(name: str, repetitions: int = 15) -> dict[str, Any]:
    """Time one case: the median CPU time of each side, alternating, after a first run of both."""
    if name not in CASES:
        raise ValueError(f"`case` must be one of {', '.join(CASES)}, got {name!r}.")
    sides = CASES[name]()
    counts = [_calls(side) for side in sides]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for side, calls, record in zip(sides, counts, times, strict=True):
            time.sleep(0.02)  # the other side's memory is given back after its result is there
            record.append(_milliseconds(side, calls))
    ours, reference = (sorted(record)[repetitions // 2] for record in times)
    return {"case": name, "ours_ms": ours, "reference_ms": reference, "ratio": reference / ours}


def _calls(side: Callable[[], Any]) -> int:
    """How many calls in a row fill 10 ms, as a single short one would mostly measure a cold start."""
    jax.block_until_ready(side())
    return math.ceil(10 / max(_milliseconds(side, 1), 0.01))


def _milliseconds(side: Callable[[], Any], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        jax.block_until_ready(side())
    return 1e3 * (time.process_time() - start) / calls
