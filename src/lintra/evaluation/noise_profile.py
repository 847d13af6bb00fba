"""The loss at each noise level."""

from collections.abc import Mapping, Sequence

from jaxtyping import Array, Key

from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.comparison import Comparison
from lintra.predictor import AbstractPredictor
from lintra.problem.noise import Fixed
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks
from lintra.runtime.progress import Track


def profile(
    predictors: Mapping[str, AbstractPredictor],
    problem: NoisyRegression,
    noise_stds: Sequence[float],
    *,
    num_sequences: int = 100_000,
    key: Key[Array, ""],
    track: Track | None = None,
) -> list[Comparison]:
    """Measure predictors at each of the given noise levels, whatever the problem's prior is.

    The inputs, true weights and standardised noise are the same at every level.
    """
    forks.check_not_forked()
    levels = [NoisyRegression(problem.dim, problem.context, Fixed(std), problem.covariance) for std in noise_stds]
    return [evaluate(predictors, level, num_sequences=num_sequences, key=key, track=track) for level in levels]
