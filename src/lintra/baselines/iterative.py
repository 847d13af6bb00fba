"""The iterative AdaRR of §6: gradient descent for the noise estimate and for the ridge solution, no inverse."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra import arguments
from lintra.baselines.ridge import per_freedom, require_freedom
from lintra.predictor import AbstractLayered, over_contexts
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics


class IterativeRidge(AbstractLayered):
    """Gradient descent towards AdaRR. For n ≤ d it is undefined, as AdaRR is, and the weights are NaN.

    One step is a gradient step on the least-squares loss, whose residual gives the current guess of σ²,
    and a gradient step on the ridge loss with that guess. Step sizes are `1/ℓ` and `1/(ℓ + σ²)` with
    ℓ an upper bound of the largest eigenvalue of Σ, so that both always converge: the power iteration
    `‖Σ^m‖^(1/m)` in the Frobenius norm with m = 2^num_squarings, within d^(1/2m) of that eigenvalue, or,
    for no squarings, the trace, which makes it several times slower.

    Arguments:
        num_steps: Number of gradient steps.
        num_squarings: How many times Σ is squared for the step size.
    """

    num_steps: int = eqx.field(static=True)
    num_squarings: int = eqx.field(static=True)

    def __init__(self, num_steps: int = 100, num_squarings: int = 3):
        self.num_steps = arguments.whole_number("num_steps", num_steps)
        self.num_squarings = arguments.whole_number("num_squarings", num_squarings, minimum=0)

    @classmethod
    def tuned(cls, problem: NoisyRegression) -> "IterativeRidge":
        """A hundred steps, as the paper has them; a problem for which AdaRR is undefined is rejected."""
        require_freedom("iterative-ridge", problem)
        return cls()

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """The weights after the last step, for every context."""
        return self.layer_weights(stats)[..., -1, :]

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The weights after every step, for every context."""
        return over_contexts(type(self)._descend, self, stats)

    def _descend(self, stats: GramStatistics) -> Float[Array, "layers d"]:
        """The weights after every step, for one context."""
        largest = self._largest_eigenvalue(stats)

        def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
            plain, ridge = state
            fit = stats.xx @ plain
            residual = stats.yy - 2 * plain @ stats.xy + plain @ fit
            noise_var = per_freedom(stats, jnp.maximum(residual, 0))
            plain = plain + (stats.xy - fit) / largest
            gradient = stats.xy - stats.xx @ ridge - noise_var * ridge
            ridge = ridge + gradient / (largest + noise_var)
            return (plain, ridge), ridge

        zero = jnp.zeros_like(stats.xy)
        return jax.lax.scan(step, (zero, zero), None, length=self.num_steps)[1]

    def _largest_eigenvalue(self, stats: GramStatistics) -> Float[Array, ""]:
        """An upper bound of the largest eigenvalue of Σ."""
        trace = jnp.maximum(jnp.trace(stats.xx), jnp.finfo(stats.gram.dtype).tiny)
        if self.num_squarings == 0:
            return trace
        power = stats.xx / trace
        for _ in range(self.num_squarings):
            power = power @ power
        return trace * jnp.linalg.norm(power) ** (0.5**self.num_squarings)
