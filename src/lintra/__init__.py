"""Linear transformers as in-context learners.

A problem is sampled into statistics, a model or a baseline turns statistics into weights, and weights
are judged against the oracle:

>>> import jax, lintra
>>> problem = lintra.NoisyRegression(dim=10, context=20, noise="uniform(0,5)")
>>> stats, truth = lintra.sample_statistics(problem, jax.random.key(0), (1000,))
>>> bayes = lintra.baselines.Bayes(problem.noise)
>>> bayes.weights(stats).shape
(1000, 10)

Importing lintra turns on JAX's 64-bit mode, unless the environment variable `JAX_ENABLE_X64` says
otherwise: a deep linear transformer is a polynomial of degree 3^layers in its data, and its losses of
1e-12 cannot be seen in 32 bits. Functions that can work in 32 bits take a `dtype`.
"""

import os

import jax

if "JAX_ENABLE_X64" not in os.environ:
    jax.config.update("jax_enable_x64", True)
