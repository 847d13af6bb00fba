"""Training: what to learn from, stages that learn, recipes made of stages, and runs that can be interrupted."""

from lintra.training.fast import Fast
from lintra.training.loop import RECIPES, follow, train
from lintra.training.outcome import Trained, judge
from lintra.training.paper import Paper
from lintra.training.recipe import AbstractRecipe, Task
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
