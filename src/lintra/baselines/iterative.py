"""The iterative AdaRR of §6: gradient descent for the noise estimate and for the ridge solution, no inverse."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra import checks
from lintra.baselines.ridge import per_freedom, require_freedom
from lintra.predictor import AbstractLayered
from lintra.problem import NoisyRegression
from lintra.statistics import GramStatistics


class IterativeRidge(AbstractLayered):
    """Gradient descent towards AdaRR. For n ≤ d it is undefined, as AdaRR is, and the weights are NaN.

    One step is a gradient step on the least-squares loss, whose residual gives the current guess of σ²,
    and a gradient step on the ridge loss with that guess. Step sizes are `1/ℓ` and `1/(ℓ + σ²)` with
    ℓ the largest eigenvalue of Σ: from `num_power_steps` power iterations started at α, or, for zero of
    them, bounded by the trace, which is safe and several times slower.

    Arguments:
        num_steps: Number of gradient steps.
        num_power_steps: Number of power iterations for the step size.
    """

    num_steps: int = eqx.field(static=True)
    num_power_steps: int = eqx.field(static=True)

    def __init__(self, num_steps: int = 100, num_power_steps: int = 10):
        self.num_steps = checks.whole_number("num_steps", num_steps)
        self.num_power_steps = checks.whole_number("num_power_steps", num_power_steps, minimum=0)

    @classmethod
    def tuned(cls, problem: NoisyRegression) -> "IterativeRidge":
        """A hundred steps, as the paper has them; a problem for which AdaRR is undefined is refused."""
        require_freedom("iterative-ridge", problem)
        return cls()

    def solve_layers(self, stats: GramStatistics) -> Float[Array, "layers d"]:
        """The weights after every step, for one context."""
        largest = self._largest_eigenvalue(stats)

        def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
            plain, ridge = state
            fit = stats.xx @ plain
            residual = stats.yy - 2 * plain @ stats.xy + plain @ fit
            noise_var = per_freedom(stats, jnp.maximum(residual, 0))
            plain = plain + (stats.xy - fit) / largest
            slope = stats.xy - stats.xx @ ridge - noise_var * ridge
            ridge = ridge + slope / (largest + noise_var)
            return (plain, ridge), ridge

        zero = jnp.zeros_like(stats.xy)
        return jax.lax.scan(step, (zero, zero), None, length=self.num_steps)[1]

    def _largest_eigenvalue(self, stats: GramStatistics) -> Float[Array, ""]:
        if self.num_power_steps == 0:
            return jnp.trace(stats.xx)
        tiny = jnp.finfo(stats.gram.dtype).tiny

        def power(direction: Array, _: None) -> tuple[Array, Array]:
            image = stats.xx @ direction
            return image / jnp.maximum(jnp.linalg.norm(image), tiny), direction @ image

        start = stats.xy / jnp.maximum(jnp.linalg.norm(stats.xy), tiny)
        estimates = jax.lax.scan(power, start, None, length=self.num_power_steps)[1]
        return jnp.maximum(estimates[-1], jnp.trace(stats.xx) / stats.dim)  # never below the mean eigenvalue
