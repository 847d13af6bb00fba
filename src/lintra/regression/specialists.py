"""Which published model serves a number of inputs and examples."""

import math
from functools import lru_cache

from lintra import zoo
from lintra.models.adapters import InOwnUnits, Rescaled
from lintra.models.diagonal import Diagonal
from lintra.models.spec import Task

DIMS = (1, 2, 3, 5, 8, 12, 20, 32, 50)
RATIOS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
LAYERS = 6

_LOUDEST = 2.0  # noise, in units of the labels' standard deviation without it: of their variance, 0.2 is signal


def prior(dim: int) -> str:
    """The noise prior at so many inputs.

    >>> prior(4)
    'uniform(0,4)'
    """
    return f"uniform(0,{_LOUDEST * dim**0.5:.6g})"


def task(dim: int, context: int) -> Task:
    """What a specialist is trained for."""
    return Task("diag", LAYERS, prior(dim), dim=dim, context=context)


def name(dim: int, context: int) -> str:
    """The name of a published specialist."""
    return f"diag-{LAYERS}-n{context}-d{dim}"


def contexts(dim: int) -> list[int]:
    """Numbers of examples for which there are specialists.

    >>> contexts(1), contexts(5)
    ([4, 8, 16, 32], [4, 5, 10, 20, 40, 80, 160])
    """
    return sorted({at_ratio(ratio, dim) for ratio in RATIOS})


def at_ratio(ratio: float, dim: int) -> int:
    """The number of examples for so many an input: at least four."""
    return max(math.ceil(ratio * dim), 4)


def adapted(model: Diagonal) -> InOwnUnits:
    """A specialist as it is used: at any context length, on labels of any size."""
    return InOwnUnits(Rescaled(model))


def published() -> zoo.Zoo:
    """The specialists that come with lintra."""
    return zoo.published("specialists.safetensors")


@lru_cache(10_000)
def nearest(dim: int, context: int) -> str:
    """The published specialist that is nearest, in n/d first of all, and in d.

    >>> nearest(10, 21)
    'diag-6-n24-d12'
    """
    cards = published().cards

    def distance(name: str) -> tuple[float, float]:
        size = math.log(cards[name]["dim"] / dim)
        ratio = math.log(cards[name]["context"] / context) - size
        return ratio**2 + 0.25 * size**2, size

    return min(cards, key=distance)


def load_nearest(dim: int, context: int) -> Diagonal:
    """That specialist, for the asked number of inputs."""
    model = published().load(nearest(dim, context))
    assert isinstance(model, Diagonal)
    return model.at(dim)


def outside(dim: int, fewest: int, most: int) -> str:
    """How far contexts are from all that specialists were trained for, as a sentence; empty if they are not.

    >>> outside(10, 20, 320)
    ''
    """
    sentences, least, top = [], at_ratio(RATIOS[0], dim), at_ratio(RATIOS[-1], dim)
    if dim > DIMS[-1]:
        sentences.append(f"{dim} inputs are {dim / DIMS[-1]:.1f} times the largest number trained for, {DIMS[-1]}")
    if fewest < least:
        sentences.append(f"{fewest} examples of {dim} inputs are fewer than the least trained for, {least}")
    if most > top:
        sentences.append(
            f"{most} examples of {dim} inputs are {most / top:.1f} times the most trained for, {top}, and with "
            "far more than those least squares is better"
        )
    return f"{'; '.join(sentences)}. The nearest specialist answers." if sentences else ""
