"""Contexts that tests of the solver share."""

import jax
import numpy as np

from lintra import NoisyRegression, sample_data

KEY = jax.random.key(0)
NAME = "diag-7-uniform(0,5)"
FULL = "full-7-uniform(0,5)"


def contexts(count=50, n=20, d=10, dtype=np.float64):
    x, y, truth = sample_data(NoisyRegression(dim=d, num_examples=n), (count,), dtype, key=KEY)
    return np.asarray(x), np.asarray(y), truth


def data(n=30, d=4, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(n, d)), rng.normal(size=d)
    return x, x @ w + noise * rng.normal(size=n), w
