"""Training: what to learn from, stages that learn, recipes made of stages, and runs that can be interrupted."""

from lintra.models.spec import Task
from lintra.training.loop import RECIPES, follow, train
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.recipes.paper import Paper
from lintra.training.result import Trained, judge
from lintra.training.stage import TrainingFailedError

__all__ = [
    "RECIPES",
    "AbstractRecipe",
    "Fast",
    "Paper",
    "Task",
    "Trained",
    "TrainingFailedError",
    "follow",
    "judge",
    "train",
]
