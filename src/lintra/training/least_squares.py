"""Levenberg–Marquardt for models of few numbers: DIAG on sequences, GD++ on the density of eigenvalues.

A fit is a sum of squares `½ Σ r²`. Every iteration needs the slope and the curvature `JᵀJ`, solves for steps
at several dampings at once, and takes the best; when none is better, nothing moves and the damping grows.
What overflows counts as infinite and is never taken.
"""

import abc
import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Key

from lintra.models.diagonal import Diagonal, diagonal_recursion, diagonal_slopes
from lintra.models.gdpp import GDPlusPlus
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.wishart import wishart_quadrature
from lintra.training.batch import Lesson

Numbers = Float[Array, "layers heads k"]
"""A model's own numbers; layers of zeros at the end do nothing, so models of all depths share one program."""

_DAMPINGS = 10.0 ** np.arange(-1, 2)
_BLOCK = 2048  # sequences whose slopes are in memory at once


class AbstractFit(eqx.Module):
    """Something to make small."""

    @abc.abstractmethod
    def value(self, numbers: Numbers) -> Float[Array, ""]:
        """The sum of squares."""

    @abc.abstractmethod
    def normal(self, numbers: Numbers) -> tuple[Float[Array, "k k"], Float[Array, " k"]]:
        """`JᵀJ` and `Jᵀr` with respect to all numbers."""


class SpectralFit(AbstractFit):
    """GD++ without sequences: its loss is an integral over the density of Σ's eigenvalues.

    With `v = E[σ²]` the loss above the best response `1 / (s + v)` is `½ Σ s (s + v) (f − 1 / (s + v))²`.

    Attributes:
        nodes: Eigenvalues s.
        weights: Their weights in the integral.
        noise_var: v.
        context: n.
    """

    nodes: Float[Array, " nodes"]
    weights: Float[Array, " nodes"]
    noise_var: Float[Array, ""]
    context: int = eqx.field(static=True)

    @classmethod
    def of(cls, problem: NoisyRegression, tail: float) -> "SpectralFit":
        """The fit for a problem; eigenvalues rarer than `tail` are left out."""
        nodes, weights = wishart_quadrature(problem.context, problem.dim)
        kept = weights > tail
        noise_var = jnp.asarray(problem.noise.second_moment)
        return cls(jnp.asarray(nodes[kept]), jnp.asarray(weights[kept]), noise_var, problem.context)

    def value(self, numbers: Numbers) -> Float[Array, ""]:
        """Loss above that of the best response."""
        return half_square(self._residuals(numbers))

    def normal(self, numbers: Numbers) -> tuple[Float[Array, "k k"], Float[Array, " k"]]:
        """By forward differentiation: numbers are few."""
        jacobian = jax.jacfwd(self._residuals)(numbers).reshape(self.nodes.shape[0], -1)
        return jacobian.T @ jacobian, jacobian.T @ self._residuals(numbers)

    def _residuals(self, numbers: Numbers) -> Float[Array, " nodes"]:
        response, remainder = GDPlusPlus(numbers, self.context, 1).response_and_remainder(self.nodes)
        total = self.nodes + self.noise_var  # where there is no noise, 1 − s f is known to more digits than f
        scale = jnp.sqrt(self.nodes / jnp.where(total > 0, total, 1))
        miss = jnp.where(self.noise_var > 0, 1 - total * response[-1], remainder[-1])
        return jnp.sqrt(self.weights) * scale * miss


class SequenceFit(AbstractFit):
    """DIAG on sequences.

    The curvature needs `Jᵀv` for directions v in the space of errors. One direction of random signs for
    every sequence gives `JᵀJ` on average, and over tens of thousands of sequences a few dozen numbers need
    no better: an iteration costs two reverse passes instead of d + 1.

    A loss l of a sequence may count as `bend log(1 + l / bend)`: a sequence on which the model explodes then
    pulls, but does not throw the fit far away. With an infinite bend it counts as it is.

    Attributes:
        lesson: Sequences, a multiple of 2,048 of them.
        signs: A direction for every sequence, in the space of its errors.
        bend: A loss far above what a good model has, or infinity.
    """

    lesson: Lesson
    signs: Float[Array, "b k"]
    bend: Float[Array, ""]

    @classmethod
    def of(cls, lesson: Lesson, key: Key[Array, ""], bend: float = math.inf) -> "SequenceFit":
        """The fit to these sequences."""
        errors = jax.eval_shape(lesson.probed, lesson.target)
        return cls(lesson, jax.random.rademacher(key, errors.shape, errors.dtype), jnp.asarray(bend))

    def value(self, numbers: Numbers) -> Float[Array, ""]:
        """Mean distance to the targets."""
        lesson = self.lesson
        losses = half_square(lesson.probed(diagonal_recursion(_omega(numbers), lesson.gram) - lesson.target))
        finite = jnp.where(jnp.isinf(self.bend), 1.0, self.bend)
        return jnp.where(jnp.isinf(self.bend), losses, finite * jnp.log1p(losses / finite)).mean()

    def normal(self, numbers: Numbers) -> tuple[Float[Array, "k k"], Float[Array, " k"]]:
        """Collected over blocks of sequences, first for the ω and then by the chain rule."""
        omega, chain = _omega(numbers), jax.jacfwd(_omega)(numbers)
        blocks = jax.tree.map(lambda leaf: leaf.reshape(-1, _BLOCK, *leaf.shape[1:]), (self.lesson, self.signs))

        def collect(total: tuple[Array, Array], block: tuple[Lesson, Array]) -> tuple[tuple[Array, Array], None]:
            lesson, signs = block
            weights = diagonal_recursion(omega, lesson.gram)
            errors = lesson.probed(weights - lesson.target)
            share = 1 / (1 + half_square(errors) / self.bend)[:, None]
            along = diagonal_slopes(omega, lesson.gram, lesson.unprobed(jnp.sqrt(share) * signs))
            along = along.reshape(_BLOCK, -1)
            slope = diagonal_slopes(omega, lesson.gram, lesson.unprobed(share * errors)).sum(axis=0)
            return (total[0] + along.T @ along, total[1] + slope.reshape(-1)), None

        zeros = jnp.zeros((omega.size, omega.size)), jnp.zeros(omega.size)
        (square, slope), _ = jax.lax.scan(collect, zeros, blocks)
        chain, count = chain.reshape(omega.size, -1), self.lesson.gram.shape[0]
        return chain.T @ square @ chain / count, chain.T @ slope / count


@jax.jit
def levenberg_marquardt(
    fit: AbstractFit, numbers: Numbers, mask: Numbers, iterations: Int[ArrayLike, ""]
) -> tuple[Numbers, Float[Array, ""]]:
    """Fit the numbers where the mask is one, and return them with the value reached."""

    def value(numbers: Numbers) -> Float[Array, ""]:
        reached = fit.value(numbers)
        return jnp.where(jnp.isnan(reached), jnp.inf, reached)

    def iterate(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        numbers, damping, reached = state
        square, slope = fit.normal(numbers)
        steps = jax.vmap(partial(_step, square, slope, mask.reshape(-1)))(damping * _DAMPINGS)
        tried = numbers - steps.reshape(-1, *numbers.shape)
        values = jax.vmap(value)(tried)
        best = jnp.argmin(values)
        better = values[best] < reached
        damping = jnp.where(better, damping * jnp.asarray(_DAMPINGS)[best], 100 * damping)
        numbers, reached = jnp.where(better, tried[best], numbers), jnp.where(better, values[best], reached)
        return numbers, jnp.clip(damping, 1e-12, 1e12), reached

    start = numbers, jnp.asarray(0.1), value(numbers)
    numbers, _, reached = jax.lax.fori_loop(0, iterations, iterate, start)
    return numbers, reached


def _step(
    square: Float[Array, "k k"], slope: Float[Array, " k"], mask: Float[Array, " k"], damping: Float[Array, ""]
) -> Float[Array, " k"]:
    """Solve `(JᵀJ + damping · diag) step = Jᵀr`, with numbers on the scale of their own curvature."""
    curvature = jnp.diag(square)
    scale = mask / jnp.sqrt(curvature + 1e-12 * curvature.max() + jnp.finfo(square.dtype).tiny)
    scaled = square * scale[:, None] * scale
    return scale * jnp.linalg.solve(scaled + damping * jnp.eye(len(slope)), slope * scale)


def _omega(numbers: Numbers) -> Float[Array, "layers 2 2"]:
    """The ω of DIAG's numbers `(p_x, p_y, q_x, q_y)`."""
    return Diagonal(numbers[..., :2], numbers[..., 2:], 1, 1).omega
