"""The regression problem: noise priors, sequences, the loss of weights."""

from lintra.problem.noise import AbstractDiscretePrior, AbstractNoisePrior, Choice, Fixed, Uniform, parse_noise
from lintra.problem.noisy_regression import NoisyRegression

__all__ = [
    "AbstractDiscretePrior",
    "AbstractNoisePrior",
    "Choice",
    "Fixed",
    "NoisyRegression",
    "Uniform",
    "parse_noise",
]
