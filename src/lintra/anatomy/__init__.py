"""From weights to the algorithm: what a model's numbers mean, what it does, and what it needs."""

from lintra.anatomy.ablation import ablate, ablation
from lintra.anatomy.behaviour import behaviour
from lintra.anatomy.canonical import canonical_form, effective_tensor
from lintra.anatomy.damped_layers import damped_layers
from lintra.anatomy.equivalence import Equivalence, compare, rotate_inputs
from lintra.anatomy.explanation import Explanation, explain
from lintra.anatomy.nearest_ridge import implied_noise
from lintra.anatomy.prior_loss import measure_losses
from lintra.anatomy.structure import OMEGAS, MatrixStructure, matrix_structures, omegas
from lintra.baselines.oracle import implied_noise_std

__all__ = [
    "OMEGAS",
    "Equivalence",
    "Explanation",
    "MatrixStructure",
    "ablate",
    "ablation",
    "behaviour",
    "canonical_form",
    "compare",
    "damped_layers",
    "effective_tensor",
    "explain",
    "implied_noise",
    "implied_noise_std",
    "matrix_structures",
    "measure_losses",
    "omegas",
    "rotate_inputs",
]
