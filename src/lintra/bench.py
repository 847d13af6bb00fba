"""Speed, measured side by side: each case is our way and a reference, interleaved in one run."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lintra import tokens
from lintra.baselines import oracle_weights
from lintra.models import Full
from lintra.objective import half_square
from lintra.problem import NoisyRegression
from lintra.statistics import sample_data, sample_statistics


def evaluation_case() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Evaluate FULL with 7 layers in float64 on 8,192 sequences: from statistics, and token by token.

    Both sides draw their sequences, ours as statistics and the reference as examples.
    """
    problem, key = NoisyRegression(), jax.random.key(0)
    model = Full.random(7, scale=0.1, key=key)
    P, Q = map(jnp.asarray, model.matrices())

    @jax.jit
    def ours(key):
        stats, truth = sample_statistics(problem, key, (8192,))
        return half_square(model.weights(stats) - oracle_weights(stats, truth.noise_std)).mean()

    @jax.jit
    def reference(key):
        x, y, truth = sample_data(problem, key, (8192,))
        query = jax.random.normal(key, (8192, problem.dim))
        prediction = jax.vmap(lambda *data: -tokens.forward(P, Q, *data)[-1][-1, -1])(x, y, query)
        return 0.5 * jnp.mean((prediction - jnp.sum(truth.weights * query, axis=-1)) ** 2)

    return partial(ours, key), partial(reference, key)


def sampling_case() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Draw the statistics of 8,192 sequences with a million examples each, and with twenty."""
    key = jax.random.key(0)
    draw = jax.jit(lambda problem: sample_statistics(problem, key, (8192,)))
    return (
        partial(draw, NoisyRegression(context=1_000_000)),
        partial(draw, NoisyRegression(context=20)),
    )


CASES: dict[str, Callable[[], tuple[Callable[[], Any], Callable[[], Any]]]] = {
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
