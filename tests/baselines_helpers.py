"""The problem and the plain formulas that tests of baselines share."""

import jax
import numpy as np

from lintra.problem.noisy_regression import NoisyRegression

PROBLEM = NoisyRegression(dim=4, num_examples=9, noise="uniform(0,3)")


def ridge(x, y, penalty):
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)


def map_to_numpy(tree):
    return jax.tree.map(np.array, tree)
