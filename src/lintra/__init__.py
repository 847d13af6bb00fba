"""Linear transformers as in-context learners.

A problem is sampled into statistics, a model or a baseline turns statistics into weights, and weights
are judged against the oracle:

>>> import jax, lintra
>>> problem = lintra.NoisyRegression(dim=10, context=20, noise="uniform(0,5)")
>>> stats, truth = lintra.sample_statistics(problem, jax.random.key(0), (1000,))
>>> bayes = lintra.baseline("bayes", problem, key=jax.random.key(1))
>>> bayes.weights(stats).shape
(1000, 10)
>>> lintra.evaluate({"bayes": bayes}, problem, key=jax.random.key(2)).adjusted("bayes").mean < 0.041
True

Importing lintra turns on JAX's 64-bit mode, unless the environment variable `JAX_ENABLE_X64` says
otherwise: a deep linear transformer is a polynomial of degree 3^layers in its data, and its losses of
1e-12 cannot be seen in 32 bits. Functions that can work in 32 bits take a `dtype`.
"""

import os

from lintra.runtime import interrupts

if interrupts.is_command():  # before the imports below, which take seconds
    interrupts.end_at_once()

import jax

if "JAX_ENABLE_X64" not in os.environ:
    jax.config.update("jax_enable_x64", True)

from lintra import anatomy, zoo
from lintra._version import __version__
from lintra.anatomy import program as export
from lintra.baselines import BASELINES, baseline
from lintra.baselines.oracle import oracle_weights
from lintra.evaluation import closed_form
from lintra.evaluation.adjusted_loss import evaluate, evaluate_layers, repeat_protocol
from lintra.evaluation.noise_profile import profile
from lintra.models import Diagonal, Full, GDPlusPlus, Rescaled, tokens
from lintra.problem.noise import parse_noise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.regression.chunked import solve
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics
from lintra.training import RECIPES, Task, train
from lintra.zoo.model_file import load, save

__all__ = [
    "BASELINES",
    "RECIPES",
    "Diagonal",
    "Full",
    "GDPlusPlus",
    "GramStatistics",
    "NoisyRegression",
    "Rescaled",
    "Task",
    "__version__",
    "anatomy",
    "baseline",
    "closed_form",
    "evaluate",
    "evaluate_layers",
    "export",
    "load",
    "oracle_weights",
    "parse_noise",
    "profile",
    "repeat_protocol",
    "sample_data",
    "sample_statistics",
    "save",
    "solve",
    "tokens",
    "train",
    "zoo",
]
