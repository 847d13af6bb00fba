"""Growth of GD++ on the density of eigenvalues, without sequences."""

from collections.abc import Hashable
from typing import ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Key

from lintra.evaluation import closed_form
from lintra.models.base import AbstractModel
from lintra.models.gdpp import GDPlusPlus
from lintra.models.spec import ModelSpec
from lintra.training.growth.base import AbstractGrowth, FitSchedule
from lintra.training.least_squares import Parameters, SpectralLeastSquares
from lintra.training.stage import fingerprint


class GDPlusPlusGrowth(AbstractGrowth[SpectralLeastSquares]):
    """GD++, fitted to its exact loss.

    Args:
        name: Name under which the stage's model is known to later stages.
        key: Randomness of the restarts; the fit itself needs no sequences.
        spec: The model to train.
        min_mass: Eigenvalues with a smaller weight are left out. A smaller value makes rarer sequences safe and
            increases the loss on typical ones. Default: 1e-8.
        num_restarts: Number of restarts at the last depth. Default: 200.
        screening_steps: Number of iterations of each restart. Default: 60.
        refinement_steps: Number of further iterations where the value is near the best one. Default: 0.
    """

    num_unknowns: ClassVar[int] = 2
    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    spec: ModelSpec = eqx.field(static=True)
    min_mass: float = eqx.field(static=True, default=1e-8)
    num_restarts: int = eqx.field(static=True, default=200)
    screening_steps: int = eqx.field(static=True, default=60)
    refinement_steps: int = eqx.field(static=True, default=0)

    @property
    def new_layers(self) -> Float[np.ndarray, "c k"]:
        """`(ω_xx, ω_yx)`."""
        return np.asarray([[-0.1, -0.1], [-0.1, -0.5], [0.05, -0.1], [0.05, -0.5]])

    @property
    def cache_key(self) -> Hashable:
        """The problem, the key and `min_mass`."""
        return "spectral", fingerprint(self.spec.problem, self.key), self.min_mass

    def prepare(self) -> SpectralLeastSquares:
        """Nodes and weights of the density."""
        return SpectralLeastSquares.from_problem(self.spec.problem, self.min_mass)

    def least_squares(self, data: SpectralLeastSquares) -> FitSchedule:
        """The same for all parts."""
        return FitSchedule(data, data, [data])

    def from_parameters(self, parameters: Parameters) -> GDPlusPlus:
        """GD++ with these rates."""
        return GDPlusPlus(parameters, self.spec.problem.num_examples, self.spec.problem.dim)

    def to_parameters(self, model: AbstractModel) -> Parameters:
        """Its rates."""
        (rates,) = model.parameters().values()
        return rates

    def validation_loss(self, parameters: Parameters, data: SpectralLeastSquares) -> Float[Array, ""]:
        """The fit's value plus the loss of the best response, which is that of constant ridge regression."""
        problem = self.spec.problem
        return data.value(parameters) + closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem)
