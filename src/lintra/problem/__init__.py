"""The regression problem: noise priors, sequences, the loss of weights."""

from lintra.problem.noise import AbstractDiscrete, AbstractNoise, Choice, Fixed, Uniform, parse_noise
from lintra.problem.noisy_regression import NoisyRegression

__all__ = [
    "AbstractDiscrete",
    "AbstractNoise",
    "Choice",
    "Fixed",
    "NoisyRegression",
    "Uniform",
    "parse_noise",
]
