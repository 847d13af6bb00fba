# Everything that predicts gives `weights(stats)`: from the statistics of a context to a weight for every input.
# So a baseline of your own is one method. Here is one that stops gradient descent early.
import jax
import jax.numpy as jnp

import lintra
from lintra.predictor import AbstractContextwise
from lintra.statistics.gram import GramStatistics


class EarlyStopping(AbstractContextwise):
    """So many steps of gradient descent from zero, with the step that is safe for the largest eigenvalue."""

    num_steps: int

    def solve(self, stats: GramStatistics) -> jax.Array:
        """The weights for one context."""
        step = 1 / jnp.trace(stats.xx)

        def descend(_: int, w: jax.Array) -> jax.Array:
            return w - step * (stats.xx @ w - stats.xy)

        return jax.lax.fori_loop(0, self.num_steps, descend, jnp.zeros(stats.dim))


# It is measured like any other, on the same sequences, with a standard error.
problem = lintra.NoisyRegression(noise="uniform(0,5)")
methods: dict[str, lintra.AbstractPredictor] = {f"{steps} steps": EarlyStopping(steps) for steps in (3, 10, 30)}
methods["ada-ridge"] = lintra.baseline("ada-ridge", problem, key=jax.random.key(0))
measured = lintra.evaluate(methods, problem, num_sequences=20_000, key=jax.random.key(1))
for name in methods:
    loss = measured.adjusted(name)
    print(f"{name:10} {loss.mean:.3f} ± {loss.standard_error:.3f}")

# Differences on the same sequences have a much smaller error than the losses themselves.
better = measured.difference("10 steps", "30 steps")
print(f"10 steps instead of 30: {better.mean:+.3f} ± {better.standard_error:.3f}")
