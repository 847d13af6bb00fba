"""Training: recipes of stages, runs that can be interrupted and resumed, and their results."""

from lintra.models.spec import ModelSpec
from lintra.training.loop import run_stages, train
from lintra.training.recipes import RECIPES
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.recipes.paper import Paper
from lintra.training.result import TrainingResult, assess
from lintra.training.stage import TrainingFailedError
from lintra.training.warm_starts import WarmStarts

__all__ = [
    "RECIPES",
    "AbstractRecipe",
    "Fast",
    "ModelSpec",
    "Paper",
    "TrainingFailedError",
    "TrainingResult",
    "WarmStarts",
    "assess",
    "run_stages",
    "train",
]
