"""The problem and the comparison that tests of models share."""

import numpy as np

from lintra.problem.noisy_regression import NoisyRegression
from members import DIM, NUM_EXAMPLES

PROBLEM = NoisyRegression(dim=DIM, num_examples=NUM_EXAMPLES, noise="uniform(0,2)")


def close(value, expected, tolerance=1e-12):
    scale = np.abs(np.asarray(expected)).max()
    return np.abs(np.asarray(value) - np.asarray(expected)).max() <= tolerance * max(scale, 1.0)
