"""The published specialist for a number of inputs and examples."""

import math
import warnings
from functools import lru_cache

from lintra import zoo
from lintra.models.adapters import Rescaled, UnitBlind
from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.regression.soundness import UnsoundWarning

DIMS = (1, 2, 3, 5, 8, 12, 20, 32, 50)
RATIOS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
NUM_LAYERS = 6

_MAX_NOISE = 2.0  # standard deviations of labels without noise: a fifth of the labels' variance is then signal


def prior(dim: int) -> str:
    """Return the noise prior of specialists for `dim` inputs.

    >>> prior(4)
    'uniform(0,4)'
    """
    return f"uniform(0,{_MAX_NOISE * dim**0.5:.6g})"


def specialist_spec(dim: int, num_examples: int) -> ModelSpec:
    """Return the family, depth and problem of a specialist."""
    return ModelSpec("diag", NUM_LAYERS, NoisyRegression(dim, num_examples, prior(dim)))


def name(dim: int, num_examples: int) -> str:
    """Return the name of a published specialist."""
    return f"diag-{NUM_LAYERS}-n{num_examples}-d{dim}"


def trained_num_examples(dim: int) -> list[int]:
    """Return the numbers of examples for which there are specialists.

    >>> trained_num_examples(1), trained_num_examples(5)
    ([4, 8, 16, 32], [4, 5, 10, 20, 40, 80, 160])
    """
    return sorted({at_ratio(ratio, dim) for ratio in RATIOS})


def at_ratio(ratio: float, dim: int) -> int:
    """Return the number of examples n with n/d = `ratio`, rounded up, and at least four."""
    return max(math.ceil(ratio * dim), 4)


def adapt(model: AbstractModel) -> UnitBlind:
    """Return a specialist as it is used: at any context length, on labels of any unit."""
    return UnitBlind(Rescaled(model))


def published() -> zoo.Zoo:
    """Return the specialists that come with lintra."""
    return zoo.published("specialists.safetensors")


@lru_cache(10_000)
def nearest(dim: int, num_examples: int) -> str:
    """Return the name of the nearest published specialist: by n/d first, then by d.

    >>> nearest(10, 21)
    'diag-6-n24-d12'
    """
    cards = published().cards

    def distance(name: str) -> tuple[float, float]:
        # In log(n/d), and with a quarter of the weight in log d. Of two equally far, the smaller d.
        size = math.log(cards[name]["dim"] / dim)
        ratio = math.log(cards[name]["context"] / num_examples) - size
        return ratio**2 + 0.25 * size**2, size

    return min(cards, key=distance)


def load_nearest(dim: int, num_examples: int) -> Diagonal:
    """Return the nearest published specialist, moved to `dim` inputs."""
    model = published().load(nearest(dim, num_examples))
    assert isinstance(model, Diagonal)
    return model.with_dim(dim)


def warn_about_range(dim: int, shortest: int, longest: int) -> None:
    """Warn the caller of the function that calls this one if contexts are outside of what specialists had.

    Args:
        dim: Number of inputs.
        shortest: Number of examples of the shortest context.
        longest: Number of examples of the longest context.
    """
    if message := range_warning(dim, shortest, longest):
        warnings.warn(message, UnsoundWarning, stacklevel=3)


def range_warning(dim: int, shortest: int, longest: int) -> str:
    """Return how far contexts are outside of the sizes that specialists were trained for, or an empty text.

    >>> range_warning(10, 20, 320)
    ''
    """
    reasons, fewest, most = [], at_ratio(RATIOS[0], dim), at_ratio(RATIOS[-1], dim)
    if dim > DIMS[-1]:
        reasons.append(f"{dim} inputs are {dim / DIMS[-1]:.1f} times the largest number trained for, {DIMS[-1]}")
    if shortest < fewest:
        reasons.append(f"{shortest} examples of {dim} inputs are fewer than the least trained for, {fewest}")
    if longest > most:
        reasons.append(
            f"{longest} examples of {dim} inputs are {longest / most:.1f} times the most trained for, "
            f"{most}, and with far more than those least squares is better"
        )
    return f"{'; '.join(reasons)}. The nearest specialist answers." if reasons else ""
