"""How far above the Bayes floor: the loss above the Bayes predictor's is exactly `½ E‖w − w_B‖²`.

Given the data alone, the true weights have mean w_B. So the difference of the two losses is a mean of squares,
with far less noise than a difference of means, and it is never below zero.
"""

from collections.abc import Mapping
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import arguments
from lintra.baselines.bayes import Bayes
from lintra.evaluation.adjusted_loss import require_memory
from lintra.evaluation.blocks import block_size, in_order
from lintra.evaluation.estimate import Estimate
from lintra.predictor import AbstractPredictor
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks
from lintra.runtime.progress import Track
from lintra.statistics.sampling import sample_statistics


def excess(
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    *,
    num_sequences: int = 100_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> dict[str, Estimate]:
    """The loss above the Bayes predictor's, by name, on the same fresh sequences.

    Sequences are drawn in whole blocks, so that there may be a few more of them than asked for.

    >>> from lintra.baselines import AdaptiveRidge
    >>> problem = NoisyRegression(noise="choice(1,3)")
    >>> above = excess({"ada-ridge": AdaptiveRidge()}, problem, num_sequences=8192, key=jax.random.key(0))
    >>> bool(abs(above["ada-ridge"].mean - (0.051 - 0.0058)) < 4 * above["ada-ridge"].standard_error)
    True
    """
    forks.check_not_forked()
    arguments.require_64_bits()
    require_memory(problem, num_sequences, len(predictors))
    count = -(-arguments.whole_number("num_sequences", num_sequences) // block_size(problem.dim))
    values: dict[str, list[np.ndarray]] = {name: [] for name in predictors}
    distances_of = partial(_distances, dict(predictors), Bayes(problem.noise), problem)
    for _, block in in_order(distances_of, count, key, track):
        for name, distances in block.items():
            values[name].append(distances)
    return {name: Estimate.of(np.concatenate(blocks)) for name, blocks in values.items()}


@jax.jit
def _distances(
    predictors: dict[str, AbstractPredictor], bayes: Bayes, problem: NoisyRegression, key: Key[Array, ""]
) -> dict[str, Float[Array, " b"]]:
    """Of one block of sequences."""
    stats, _ = sample_statistics(problem, key, (block_size(problem.dim),))
    best = bayes.weights(stats)
    return {name: half_square(p.weights(stats) - best, problem.covariance) for name, p in predictors.items()}
