"""How good a predictor is: losses on fresh sequences, exact losses, the paper's numbers."""

from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.bayes_excess import Excess, excess
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate, ProtocolQuantiles, Tail
from lintra.evaluation.layers import Layers
from lintra.evaluation.measurement import AbstractMeasurement, Results, measure_all
from lintra.evaluation.noise_profile import Profile, profile
from lintra.evaluation.table1_column import Column

__all__ = [
    "AbstractMeasurement",
    "Column",
    "Comparison",
    "Estimate",
    "Excess",
    "Layers",
    "Profile",
    "ProtocolQuantiles",
    "Results",
    "Tail",
    "evaluate",
    "excess",
    "measure_all",
    "profile",
]
