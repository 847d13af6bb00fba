"""How good a predictor is: losses on fresh sequences, exact losses, the paper's numbers."""

from lintra.evaluation.adjusted_loss import evaluate, evaluate_layers, repeat_protocol
from lintra.evaluation.bayes_excess import excess
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate, Tail
from lintra.evaluation.noise_profile import profile

__all__ = [
    "Comparison",
    "Estimate",
    "Tail",
    "evaluate",
    "evaluate_layers",
    "excess",
    "profile",
    "repeat_protocol",
]
