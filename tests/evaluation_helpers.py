"""Problems and predictors that tests of the evaluation share."""

import numpy as np

from lintra.baselines import AdaptiveRidge, LeastSquares
from lintra.evaluation.blocks import block_size
from lintra.problem.noisy_regression import NoisyRegression
from members import random_rotation

BLOCK = block_size(4)
PROBLEM = NoisyRegression(dim=4, num_examples=9, noise="uniform(0,3)")
TWO = {"ols": LeastSquares(), "ada": AdaptiveRidge()}
ROTATION = random_rotation(np.random.default_rng(3), 4)
ANISOTROPIC = NoisyRegression(
    dim=4, num_examples=9, noise="uniform(0,3)", covariance=ROTATION @ np.diag([0.1, 0.5, 1, 3]) @ ROTATION.T
)
