"""Speed, measured side by side: each case is our way and a reference, interleaved in one run."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from lintra import tokens
from lintra.baselines import oracle_weights
from lintra.models import Full
from lintra.objective import half_square
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
}


def run(name: str, repetitions: int = 7) -> dict[str, Any]:
    """Time one case: the median CPU time of each side, alternating, after a first run of both."""
    if name not in CASES:
        raise ValueError(f"`case` must be one of {', '.join(CASES)}, got {name!r}.")
    sides = CASES[name]()
    for side in sides:
        jax.block_until_ready(side())
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for side, record in zip(sides, times, strict=True):
            start = time.process_time()
            jax.block_until_ready(side())
            record.append(1e3 * (time.process_time() - start))
    ours, reference = (sorted(record)[repetitions // 2] for record in times)
    return {"case": name, "ours_ms": ours, "reference_ms": reference, "ratio": reference / ours}
