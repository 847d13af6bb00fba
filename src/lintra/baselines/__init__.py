"""What linear transformers are compared with, one idea per file.

`BASELINES` lists them by the names used on the command line and in Table 1. The oracle is not among
them: it knows σ, and everything here sees only the context.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, Key

from lintra.arguments import KeyLike, random_key
from lintra.baselines.bayes import Bayes, UnitBlindBayes
from lintra.baselines.iterative import IterativeRidge
from lintra.baselines.oracle import oracle_weights
from lintra.baselines.ridge import AdaptiveRidge, ConstantRidge, LeastSquares
from lintra.baselines.tuned import TunedRidge
from lintra.kernel.precision import in_64_bits
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.registry import Registry
from lintra.runtime import forks


class Baseline(NamedTuple):
    """How a baseline is made and shown.

    Attributes:
        label: Its name in tables and figures.
        build: Makes the predictor for a problem. The key is for baselines that are tuned on sequences.
        in_table1: Whether Table 1 of the paper has it, or the Bayes floor that stands beside it.
        needs_freedom: Whether it estimates σ from n − d degrees of freedom, and so needs n > d.
    """

    label: str
    build: Callable[[NoisyRegression, Key[Array, ""]], AbstractPredictor]
    in_table1: bool = False
    needs_freedom: bool = False


_OWN = {
    "ols": Baseline("OLS", lambda problem, key: LeastSquares()),
    "const-ridge": Baseline("ConstRR", lambda problem, key: ConstantRidge.tuned(problem), in_table1=True),
    "ada-ridge": Baseline(
        "AdaRR", lambda problem, key: AdaptiveRidge.tuned(problem), in_table1=True, needs_freedom=True
    ),
    "tuned-ridge": Baseline(
        "TunedRR", lambda problem, key: TunedRidge.tuned(problem, key=key), in_table1=True, needs_freedom=True
    ),
    "iterative-ridge": Baseline(
        "Iterative AdaRR", lambda problem, key: IterativeRidge.tuned(problem), needs_freedom=True
    ),
    "bayes": Baseline("Bayes", lambda problem, key: Bayes(problem.noise), in_table1=True),
}

BASELINES: Registry[Baseline] = Registry("baselines", _OWN)
"""Baselines by name. A package adds its own by an entry point of the group `lintra.baselines`."""

TABLE1_BASELINES = tuple(name for name, baseline in _OWN.items() if baseline.in_table1)
"""The baselines of Table 1 by name, in its order."""


def baseline(name: str, problem: NoisyRegression, *, key: KeyLike = 0) -> AbstractPredictor:
    """Return a baseline, tuned for a problem.

    Args:
        name: A name of `BASELINES`.
        problem: The regression problem.
        key: Randomness of the sequences that `tuned-ridge` is tuned on, a number or a key. Default: 0.

    Returns:
        The predictor.

    >>> baseline("const-ridge", NoisyRegression(noise="fixed(2)"))
    ConstantRidge(constant=f64[])
    """
    if name not in BASELINES:
        raise ValueError(f"`name` must be one of {', '.join(BASELINES)}, got {name!r}.")
    forks.check_not_forked()
    with in_64_bits():
        return BASELINES[name].build(problem, random_key(key))


__all__ = [
    "BASELINES",
    "TABLE1_BASELINES",
    "AdaptiveRidge",
    "Baseline",
    "Bayes",
    "ConstantRidge",
    "IterativeRidge",
    "LeastSquares",
    "TunedRidge",
    "UnitBlindBayes",
    "baseline",
    "oracle_weights",
]
