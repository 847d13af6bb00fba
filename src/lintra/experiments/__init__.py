"""Experiments: training that is run once by a command, and whose stored rows claims and figures judge."""

from lintra.experiments.dynamics import Dynamics
from lintra.experiments.equation6 import Equation6
from lintra.experiments.equation8 import Equation8
from lintra.experiments.experiment import AbstractExperiment, run_experiment
from lintra.experiments.paper_recipe import PaperRecipe
from lintra.experiments.random_starts import Starts
from lintra.experiments.stored import StoredExperiment, stored_path, stored_rows

EXPERIMENTS: dict[str, type[AbstractExperiment]] = {
    kind.name: kind for kind in (Equation8, Equation6, Starts, PaperRecipe, Dynamics)
}
"""Experiments by name."""

__all__ = [
    "EXPERIMENTS",
    "AbstractExperiment",
    "StoredExperiment",
    "run_experiment",
    "stored_path",
    "stored_rows",
]
