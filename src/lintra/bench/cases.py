"""The cases: lintra and a reference, ready to run."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lintra import zoo
from lintra.baselines.oracle import oracle_weights
from lintra.kernel import library
from lintra.models import tokens
from lintra.models.base import AbstractModel
from lintra.models.damping import Damping
from lintra.models.families import FAMILIES
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus
from lintra.models.thresholds import measure_damping
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics

Sides = tuple[Callable[[], Any], Callable[[], Any]]
"""Lintra and the reference, each a function without arguments."""


def evaluation_case() -> Sides:
    """Measure FULL with 7 layers in float64 on the same 100,000 sequences, from examples to mean adjusted loss.

    Ours computes Gram matrices and averages over the query exactly; the reference updates all tokens, Eq. (3).
    """
    problem, key = NoisyRegression(), jax.random.key(0)
    model = Full.random(7, scale=0.1, key=key)
    P, Q = map(jnp.asarray, model.matrices())
    x, y, truth = sample_data(problem, (100_000,), key=key)
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
    """Loss and gradient of one training step, batch 2,048, float32: ours, and a plain recursion over tokens.

    With `fresh` both sides draw their sequences at each step.
    """
    problem, key, batch_size = NoisyRegression(), jax.random.key(0), 2048
    model = random_model(family, num_layers, problem)
    matrices = tuple(jnp.asarray(matrix[:, 0]) for matrix in model.matrices())
    value_and_grad, reference = jax.value_and_grad(loss), jax.value_and_grad(_loss_of_tokens)
    if not fresh:
        data = jax.jit(partial(_tokens, problem, batch_size))(key)
        return gradient_step(family, num_layers, batch_size, problem), partial(jax.jit(reference), matrices, *data)
    step = jax.jit(lambda model, key: value_and_grad(model, *_statistics(problem, batch_size, key)))
    reference_step = jax.jit(lambda matrices, key: reference(matrices, *_tokens(problem, batch_size, key)))
    return partial(step, model, key), partial(reference_step, matrices, key)


def gradient_step(family: str, num_layers: int, batch_size: int, problem: NoisyRegression) -> Callable[[], Any]:
    """Our loss and gradient of one training step in float32 on given sequences; GD++ needs eigenvalues only."""
    model = random_model(family, num_layers, problem)
    mean_gram, target = jax.jit(partial(_statistics, problem, batch_size))(jax.random.key(0))
    if not isinstance(model, GDPlusPlus):
        return partial(jax.jit(jax.value_and_grad(loss)), model, mean_gram, target)

    def spectral(model: GDPlusPlus, eigenvalues: Array) -> Array:
        return model.spectral_loss(eigenvalues, 1 / batch_size, problem.noise.second_moment)

    eigenvalues = jnp.linalg.eigvalsh(mean_gram[:, :-1, :-1]) * problem.num_examples
    return partial(jax.jit(jax.value_and_grad(spectral)), model, eigenvalues)


def random_model(family: str, num_layers: int, problem: NoisyRegression) -> AbstractModel:
    """Return a model in float32 with parameters near zero, as at the start of training."""
    size = {"dim": problem.dim, "num_examples": problem.num_examples}
    model = FAMILIES[family].random(num_layers, key=jax.random.key(0), **size)
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), model)


def loss(model: AbstractModel, mean_gram: Array, target: Array) -> Array:
    """Return the training loss."""
    return model.loss(mean_gram, target)


def _statistics(problem: NoisyRegression, batch_size: int, key: Array) -> tuple[Array, Array]:
    stats, truth = sample_statistics(problem, (batch_size,), jnp.float32, key=key)
    return stats.gram / problem.num_examples, truth.weights


def _tokens(problem: NoisyRegression, batch_size: int, key: Array) -> tuple[Array, Array]:
    """Return all tokens of a batch, (batch, n+1, d+1) with the query last, and the query's label."""
    x, y, truth = sample_data(problem, (batch_size,), jnp.float32, key=key)
    query = jax.random.normal(key, (batch_size, 1, problem.dim), jnp.float32)
    context = jnp.concatenate([x, y[..., None]], axis=-1)
    token = jnp.concatenate([query, jnp.zeros((batch_size, 1, 1), jnp.float32)], axis=-1)
    return jnp.concatenate([context, token], axis=1), jnp.sum(truth.weights * query[:, 0], axis=-1)


def _loss_of_tokens(matrices: tuple[Array, ...], tokens: Array, label: Array) -> Array:
    # Eq. (3) for all tokens of a batch; the prediction is minus the query's last component.
    for p, q in zip(*matrices, strict=True):
        context = tokens[:, :-1]
        scores = (tokens @ q.T) @ jnp.swapaxes(context, -1, -2)
        tokens = tokens + scores @ context @ p.T
    return 0.5 * jnp.mean((-tokens[:, -1, -1] - label) ** 2)


def damping_case(family: str, *, gradient: bool, outside: bool = False) -> Sides:
    """A damped model with 7 layers, batch 2,048, float32, and the same model as printed.

    Args:
        family: Name of the family.
        gradient: Whether to compute loss and gradient of one training step. Otherwise: the weights.
        outside: Whether all contexts are outside of the range of training. Default: all are inside.
    """
    problem, batch_size = NoisyRegression(), 2048
    damped = damped_model(family, problem, outside=outside)
    mean_gram, target = jax.jit(partial(_statistics, problem, batch_size))(jax.random.key(0))
    models = damped, damped.without_damping().store_damping(None)
    if gradient:
        step = jax.jit(jax.value_and_grad(loss))
        ours, reference = (partial(step, model, mean_gram, target) for model in models)
    else:
        forward = jax.jit(lambda model, mean_gram: model.final_weights(mean_gram))
        ours, reference = (partial(forward, model, mean_gram) for model in models)
    return ours, reference


def damped_model(family: str, problem: NoisyRegression, *, outside: bool) -> AbstractModel:
    """Return a damped model in float32 with 7 layers, for which contexts of a problem are inside or outside.

    Inside it is the published model with its thresholds, which 0.01 % of contexts exceed in a layer. Outside it
    has random parameters near zero, with which inputs change little, and thresholds below all of them.
    """
    if not outside:
        damped = zoo.load(f"{family}-7-{problem.noise}").with_damping()
    else:
        model = random_model(family, 7, problem)
        least = measure_damping(model, problem, num_sequences=16_384, quantile=0.0)
        damped = model.with_damping(Damping(0.1 * 0.9 ** np.arange(7) * least.rho[0], None, 0.9 * least.trace))
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), damped)


def threads_case() -> Sides:
    """Loss and gradient of FULL with 7 layers, batch 4,096, on two threads, and on one."""
    step = gradient_step("full", 7, 4096, NoisyRegression())

    def on(num_threads: int) -> Any:
        library.limit_threads(num_threads)
        return step()

    return partial(on, 2), partial(on, 1)


def sgemm_case() -> Sides:
    """The arithmetic rate of the FULL kernel, 7 layers, against a product of two large matrices.

    The matrices have a size whose product takes the same number of multiply-adds, to 1 %, as 11 products of
    (d+1)³ for each layer. So the ratio of times is a ratio of rates. Larger matrices run a little faster.
    """
    ours = gradient_step("full", 7, 2048, NoisyRegression())
    matrix = jax.random.normal(jax.random.key(0), (592, 592), jnp.float32)  # 592³ = 11 · 11³ · 7 · 2048 / 1.01
    return ours, partial(jax.jit(lambda matrix: matrix @ matrix), matrix)


def sampling_case() -> Sides:
    """Draw the statistics of 8,192 sequences with a million examples each, and with twenty."""
    key = jax.random.key(0)
    draw = jax.jit(lambda problem: sample_statistics(problem, (8192,), key=key))
    return (
        partial(draw, NoisyRegression(num_examples=1_000_000)),
        partial(draw, NoisyRegression(num_examples=20)),
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
    "full-7-damped": partial(damping_case, "full", gradient=True),
    "diag-7-damped": partial(damping_case, "diag", gradient=True),
    "full-7-damped-forward": partial(damping_case, "full", gradient=False),
    "diag-7-damped-forward": partial(damping_case, "diag", gradient=False),
    "full-7-outside": partial(damping_case, "full", gradient=True, outside=True),
    "diag-7-outside": partial(damping_case, "diag", gradient=True, outside=True),
    "full-7-sgemm": sgemm_case,
    "full-7-threads": threads_case,
}

THREADED = {"full-7-threads"}
"""Cases about wall time on several threads. All others are about CPU time on one."""
