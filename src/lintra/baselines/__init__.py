"""What linear transformers are compared with, one idea per file.

`BASELINES` lists them by the names used on the command line and in Table 1. The oracle is not among
them: it knows σ, and everything here sees only the context.
"""

from collections.abc import Callable

from jaxtyping import Array, Key

from lintra.baselines.bayes import Bayes, UnitBlindBayes
from lintra.baselines.iterative import IterativeRidge
from lintra.baselines.oracle import oracle_weights
from lintra.baselines.ridge import AdaptiveRidge, ConstantRidge, LeastSquares
from lintra.baselines.tuned import TunedRidge
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks

BASELINES: dict[str, Callable[[NoisyRegression, Key[Array, ""]], AbstractPredictor]] = {
    "ols": lambda problem, key: LeastSquares(),
    "const-ridge": lambda problem, key: ConstantRidge.tuned(problem),
    "ada-ridge": lambda problem, key: AdaptiveRidge.tuned(problem),
    "tuned-ridge": lambda problem, key: TunedRidge.tuned(problem, key=key),
    "iterative-ridge": lambda problem, key: IterativeRidge.tuned(problem),
    "bayes": lambda problem, key: Bayes(problem.noise),
}


def baseline(name: str, problem: NoisyRegression, *, key: Key[Array, ""]) -> AbstractPredictor:
    """The baseline of this name, tuned for a problem on sequences drawn from `key` where it is tuned at all.

    >>> import jax
    >>> baseline("const-ridge", NoisyRegression(noise="fixed(2)"), key=jax.random.key(0))
    ConstantRidge(constant=f64[])
    """
    if name not in BASELINES:
        raise ValueError(f"`name` must be one of {', '.join(BASELINES)}, got {name!r}.")
    forks.check_not_forked()
    return BASELINES[name](problem, key)


__all__ = [
    "BASELINES",
    "AdaptiveRidge",
    "Bayes",
    "ConstantRidge",
    "IterativeRidge",
    "LeastSquares",
    "TunedRidge",
    "UnitBlindBayes",
    "baseline",
    "oracle_weights",
]
