"""Linear transformers as in-context learners.

A problem is sampled into statistics, a model or a baseline turns statistics into weights, and weights
are judged against the oracle:

>>> import jax, lintra
>>> problem = lintra.NoisyRegression(dim=10, num_examples=20, noise="uniform(0,5)")
>>> stats, truth = lintra.sample_statistics(problem, (1000,))
>>> bayes = lintra.baseline("bayes", problem, key=jax.random.key(1))
>>> bayes.weights(stats).shape
(1000, 10)
>>> lintra.evaluate({"bayes": bayes}, problem, key=jax.random.key(2)).adjusted("bayes").mean < 0.041
True

Names are imported when they are first used, so `import lintra` alone takes no time.

64-bit mode: if lintra is imported before JAX and the environment variable `JAX_ENABLE_X64` is not set, JAX will be
in 64-bit mode. If JAX has been imported already, lintra leaves its mode as it is. In either mode, losses, training
and fits are computed in 64 bits: a deep linear transformer is a polynomial of degree 3^layers in its data, and its
losses of 1e-12 cannot be seen in 32 bits. All else follows JAX's mode, which
`jax.config.update("jax_enable_x64", True)` turns on.
"""

import os as _os
import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from lintra._version import __version__
from lintra.runtime import interrupts as _interrupts

if _interrupts.is_command():  # before all other imports, which take seconds
    _interrupts.end_at_once()

if "jax" not in _sys.modules:
    _os.environ.setdefault("JAX_ENABLE_X64", "1")

if _TYPE_CHECKING:  # the same names as in `_HOMES`, for type checkers and editors
    from lintra import anatomy, theory, zoo
    from lintra.anatomy import program as export
    from lintra.baselines import BASELINES, baseline
    from lintra.baselines.bayes import Bayes
    from lintra.baselines.oracle import oracle_weights
    from lintra.evaluation import closed_form
    from lintra.evaluation.adjusted_loss import evaluate
    from lintra.evaluation.bayes_excess import excess
    from lintra.evaluation.noise_profile import profile
    from lintra.kernel.plain import plain_jax
    from lintra.models import tokens
    from lintra.models.adapters import Rescaled
    from lintra.models.base import AbstractModel
    from lintra.models.damping import Damping
    from lintra.models.diagonal import Diagonal
    from lintra.models.full import Full
    from lintra.models.gdpp import GDPlusPlus
    from lintra.models.spec import ModelSpec
    from lintra.models.thresholds import measure_damping
    from lintra.predictor import AbstractContextwise, AbstractLayered, AbstractPredictor
    from lintra.problem.noise import AbstractNoisePrior, parse_noise
    from lintra.problem.noisy_regression import NoisyRegression
    from lintra.regression.chunked import solve
    from lintra.regression.regressor import LinearTransformerRegressor
    from lintra.statistics.gram import GramStatistics
    from lintra.statistics.sampling import sample_data, sample_statistics
    from lintra.training.loop import train
    from lintra.training.recipes import RECIPES
    from lintra.training.recipes.base import AbstractRecipe
    from lintra.training.stage import AbstractStage
    from lintra.zoo.model_file import load, save

__all__ = [
    "BASELINES",
    "RECIPES",
    "AbstractContextwise",
    "AbstractLayered",
    "AbstractModel",
    "AbstractNoisePrior",
    "AbstractPredictor",
    "AbstractRecipe",
    "AbstractStage",
    "Bayes",
    "Damping",
    "Diagonal",
    "Full",
    "GDPlusPlus",
    "GramStatistics",
    "LinearTransformerRegressor",
    "ModelSpec",
    "NoisyRegression",
    "Rescaled",
    "__version__",
    "anatomy",
    "baseline",
    "closed_form",
    "evaluate",
    "excess",
    "export",
    "load",
    "measure_damping",
    "oracle_weights",
    "parse_noise",
    "plain_jax",
    "profile",
    "sample_data",
    "sample_statistics",
    "save",
    "solve",
    "theory",
    "tokens",
    "train",
    "zoo",
]

_HOMES = {
    "lintra.baselines": ("BASELINES", "baseline"),
    "lintra.baselines.bayes": ("Bayes",),
    "lintra.baselines.oracle": ("oracle_weights",),
    "lintra.evaluation.adjusted_loss": ("evaluate",),
    "lintra.evaluation.bayes_excess": ("excess",),
    "lintra.evaluation.noise_profile": ("profile",),
    "lintra.kernel.plain": ("plain_jax",),
    "lintra.models.adapters": ("Rescaled",),
    "lintra.models.base": ("AbstractModel",),
    "lintra.models.damping": ("Damping",),
    "lintra.models.diagonal": ("Diagonal",),
    "lintra.models.full": ("Full",),
    "lintra.models.gdpp": ("GDPlusPlus",),
    "lintra.models.spec": ("ModelSpec",),
    "lintra.models.thresholds": ("measure_damping",),
    "lintra.predictor": ("AbstractContextwise", "AbstractLayered", "AbstractPredictor"),
    "lintra.problem.noise": ("AbstractNoisePrior", "parse_noise"),
    "lintra.problem.noisy_regression": ("NoisyRegression",),
    "lintra.regression.chunked": ("solve",),
    "lintra.regression.regressor": ("LinearTransformerRegressor",),
    "lintra.statistics.gram": ("GramStatistics",),
    "lintra.statistics.sampling": ("sample_data", "sample_statistics"),
    "lintra.training.loop": ("train",),
    "lintra.training.recipes": ("RECIPES",),
    "lintra.training.recipes.base": ("AbstractRecipe",),
    "lintra.training.stage": ("AbstractStage",),
    "lintra.zoo.model_file": ("load", "save"),
}
_MODULES = {
    "anatomy": "lintra.anatomy",
    "closed_form": "lintra.evaluation.closed_form",
    "export": "lintra.anatomy.program",
    "theory": "lintra.theory",
    "tokens": "lintra.models.tokens",
    "zoo": "lintra.zoo",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> _Any:
    """Import a public name, or a package such as `lintra.models`, when it is first used (PEP 562)."""
    if name in _HOME:
        value = getattr(_import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = _import_module(_MODULES[name])
    elif not name.startswith("_") and _find_spec(f"lintra.{name}") is not None:
        value = _import_module(f"lintra.{name}")
    else:
        raise AttributeError(f"module 'lintra' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, also those that have not been imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))})
