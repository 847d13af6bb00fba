"""An extension of lintra: a family of models, a noise prior and a baseline."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lintra.baselines import Baseline
from lintra.models import AbstractModel, Diagonal, Full
from lintra.predictor import AbstractPredictor
from lintra.problem import AbstractNoisePrior
from lintra.statistics import GramStatistics


class GradientDescent(AbstractModel):
    """Plain gradient descent: one rate `n ω_yx` per layer and head."""

    family: ClassVar[str] = "gd"
    label: ClassVar[str] = "GD"
    _scaled: ClassVar[str] = "rates"
    rates: Float[Array, "layers heads"]
    num_examples: int = eqx.field(static=True)
    token_dim: int = eqx.field(static=True)

    def __init__(self, rates: Float[Array, "layers heads"], num_examples: int, dim: int):
        self.rates, self.num_examples, self.token_dim = jnp.asarray(rates), num_examples, dim + 1

    @classmethod
    def _random(cls, draw: Callable[..., Array], num_examples: int, dim: int) -> "GradientDescent":
        return cls(draw(1)[0], num_examples, dim)

    def to_full(self) -> Full:
        """The same model with `p = (0, rate)` and `q = (1, 0)`."""
        zero, one = jnp.zeros_like(self.rates), jnp.ones_like(self.rates)
        p, q = jnp.stack([zero, self.rates], axis=-1), jnp.stack([one, zero], axis=-1)
        return Diagonal(p, q, self.num_examples, self.dim).to_full()

    def for_label_scale(self, label_scale: float) -> "GradientDescent":
        """The model itself: it is linear in the labels."""
        return self


class LogUniform(AbstractNoisePrior):
    """log σ uniform between the logarithms of two bounds."""

    name: ClassVar[str] = "loguniform"
    low: float
    high: float

    def sample(self, key, shape=(), dtype=float):
        """Draw σ."""
        return self.low * (self.high / self.low) ** jax.random.uniform(key, shape, dtype)

    def quadrature(self, num_nodes=64):
        """Gauss–Legendre nodes in log σ."""
        nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
        return self.low * (self.high / self.low) ** ((jnp.asarray(nodes) + 1) / 2), jnp.asarray(weights) / 2


class Zero(AbstractPredictor):
    """Predicts zero."""

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """Zeros."""
        return jnp.zeros_like(stats.xy)


ZERO = Baseline("Zero", lambda problem, key: Zero())
