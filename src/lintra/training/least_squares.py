"""Levenberg–Marquardt for models of few parameters: DIAG on sequences, GD++ on the density of eigenvalues.

A problem is a sum of squares `½ Σ r²`. Each iteration computes the gradient `Jᵀr` and the curvature `JᵀJ`, solves
for steps at several dampings at once, and takes the best one. If none is better, the parameters stay and the
damping grows. An overflow counts as infinite, so it is never taken.
"""

import abc
import math
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Key

from lintra.models.diagonal import Diagonal, diagonal_gradients, diagonal_recursion
from lintra.models.gdpp import GDPlusPlus
from lintra.problem.loss import half_square
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.eigenvalue_density import wishart_quadrature
from lintra.training.batch import Batch

Parameters = Float[Array, "layers heads k"]
"""Parameters of a model. Layers of zeros at the end change no token, so models of all depths share one program."""

_DAMPINGS = 10.0 ** np.arange(-1, 2)
_BLOCK = 2048  # sequences whose gradients are in memory at once


class Fit(NamedTuple):
    """Parameters, and the sum of squares there."""

    parameters: Parameters
    value: Float[Array, ""]


class AbstractLeastSquares(eqx.Module):
    """A sum of squares to minimise."""

    @abc.abstractmethod
    def value(self, parameters: Parameters) -> Float[Array, ""]:
        """The sum of squares."""

    @abc.abstractmethod
    def normal(self, parameters: Parameters) -> tuple[Float[Array, "k k"], Float[Array, " k"]]:
        """`JᵀJ` and `Jᵀr` with respect to all parameters."""


class SpectralLeastSquares(AbstractLeastSquares):
    """GD++ without sequences: its loss is an integral over the density of Σ's eigenvalues.

    With `v = E[σ²]` the loss above the best response `1 / (s + v)` is `½ Σ s (s + v) (f − 1 / (s + v))²`.

    Attributes:
        nodes: Eigenvalues s.
        weights: Their weights in the integral.
        noise_var: v.
        num_examples: n.
    """

    nodes: Float[Array, " nodes"]
    weights: Float[Array, " nodes"]
    noise_var: Float[Array, ""]
    num_examples: int = eqx.field(static=True)

    @classmethod
    def from_problem(cls, problem: NoisyRegression, min_mass: float) -> "SpectralLeastSquares":
        """The fit for a problem, without eigenvalues whose weight is at most `min_mass`."""
        nodes, weights = wishart_quadrature(problem.num_examples, problem.dim)
        heavy = weights > min_mass
        noise_var = jnp.asarray(problem.noise.second_moment)
        return cls(jnp.asarray(nodes[heavy]), jnp.asarray(weights[heavy]), noise_var, problem.num_examples)

    def value(self, parameters: Parameters) -> Float[Array, ""]:
        """Loss above that of the best response."""
        return half_square(self._residuals(parameters))

    def normal(self, parameters: Parameters) -> tuple[Float[Array, "k k"], Float[Array, " k"]]:
        """By forward differentiation, since the parameters are few."""
        jacobian = jax.jacfwd(self._residuals)(parameters).reshape(self.nodes.shape[0], -1)
        return jacobian.T @ jacobian, jacobian.T @ self._residuals(parameters)

    def _residuals(self, parameters: Parameters) -> Float[Array, " nodes"]:
        response, remainder = GDPlusPlus(parameters, self.num_examples, 1).response_and_remainder(self.nodes)
        total = self.nodes + self.noise_var
        # Without noise the model gives 1 − s f to more digits than f.
        scale = jnp.sqrt(self.nodes / jnp.where(total > 0, total, 1))
        miss = jnp.where(self.noise_var > 0, 1 - total * response[-1], remainder[-1])
        return jnp.sqrt(self.weights) * scale * miss


class SequenceLeastSquares(AbstractLeastSquares):
    """DIAG on sequences.

    The curvature needs `Jᵀv` for directions v in the space of errors. One direction of random signs per sequence
    gives `JᵀJ` on average. With tens of thousands of sequences and a few dozen parameters this is accurate enough,
    and an iteration costs two reverse passes instead of d + 1.

    A loss l of a sequence may count as `b log(1 + l / b)` with b = `cauchy_scale`, as in SciPy's robust losses. A
    sequence on which the model diverges then has a limited effect. With an infinite b the loss counts as it is.

    Attributes:
        batch: Sequences, a multiple of 2,048 of them.
        signs: A direction for each sequence, in the space of its errors.
        cauchy_scale: A loss far above that of a good model, or infinity.
    """

    batch: Batch
    signs: Float[Array, "b k"]
    cauchy_scale: Float[Array, ""]

    @classmethod
    def from_batch(
        cls, batch: Batch, key: Key[Array, ""], cauchy_scale: float = math.inf
    ) -> "SequenceLeastSquares":
        """The fit to these sequences."""
        errors = jax.eval_shape(batch.errors, batch.target)
        return cls(batch, jax.random.rademacher(key, errors.shape, errors.dtype), jnp.asarray(cauchy_scale))

    def value(self, parameters: Parameters) -> Float[Array, ""]:
        """Mean loss."""
        batch = self.batch
        losses = half_square(batch.errors(diagonal_recursion(_omega(parameters), batch.mean_gram) - batch.target))
        finite = jnp.where(jnp.isinf(self.cauchy_scale), 1.0, self.cauchy_scale)
        return jnp.where(jnp.isinf(self.cauchy_scale), losses, finite * jnp.log1p(losses / finite)).mean()

    def normal(self, parameters: Parameters) -> tuple[Float[Array, "k k"], Float[Array, " k"]]:
        """Collected over blocks of sequences, first for the ω and then by the chain rule."""
        omega, chain = _omega(parameters), jax.jacfwd(_omega)(parameters)
        blocks = jax.tree.map(lambda leaf: leaf.reshape(-1, _BLOCK, *leaf.shape[1:]), (self.batch, self.signs))

        def collect(total: tuple[Array, Array], block: tuple[Batch, Array]) -> tuple[tuple[Array, Array], None]:
            batch, signs = block
            weights = diagonal_recursion(omega, batch.mean_gram)
            errors = batch.errors(weights - batch.target)
            share = 1 / (1 + half_square(errors) / self.cauchy_scale)[:, None]
            along = diagonal_gradients(omega, batch.mean_gram, batch.pull_back(jnp.sqrt(share) * signs))
            along = along.reshape(_BLOCK, -1)
            gradient = diagonal_gradients(omega, batch.mean_gram, batch.pull_back(share * errors)).sum(axis=0)
            return (total[0] + along.T @ along, total[1] + gradient.reshape(-1)), None

        zeros = jnp.zeros((omega.size, omega.size)), jnp.zeros(omega.size)
        (square, gradient), _ = jax.lax.scan(collect, zeros, blocks)
        chain, count = chain.reshape(omega.size, -1), self.batch.mean_gram.shape[0]
        return chain.T @ square @ chain / count, chain.T @ gradient / count


@jax.jit
def levenberg_marquardt(
    problem: AbstractLeastSquares, parameters: Parameters, mask: Parameters, num_iterations: Int[ArrayLike, ""]
) -> Fit:
    """Minimise a sum of squares.

    Args:
        problem: The sum of squares.
        parameters: Where to start.
        mask: One for the parameters to fit, zero for those that stay.
        num_iterations: Number of iterations.

    Returns:
        The parameters, and the value there, which is never above the value at the start.
    """

    def value(parameters: Parameters) -> Float[Array, ""]:
        reached = problem.value(parameters)
        return jnp.where(jnp.isnan(reached), jnp.inf, reached)

    def iterate(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        parameters, damping, reached = state
        square, gradient = problem.normal(parameters)
        steps = jax.vmap(partial(_step, square, gradient, mask.reshape(-1)))(damping * _DAMPINGS)
        candidates = parameters - steps.reshape(-1, *parameters.shape)
        values = jax.vmap(value)(candidates)
        best = jnp.argmin(values)
        better = values[best] < reached
        damping = jnp.where(better, damping * jnp.asarray(_DAMPINGS)[best], 100 * damping)
        parameters, reached = (
            jnp.where(better, candidates[best], parameters),
            jnp.where(better, values[best], reached),
        )
        return parameters, jnp.clip(damping, 1e-12, 1e12), reached

    start = parameters, jnp.asarray(0.1), value(parameters)
    parameters, _, reached = jax.lax.fori_loop(0, num_iterations, iterate, start)
    return Fit(parameters, reached)


def _step(
    square: Float[Array, "k k"], gradient: Float[Array, " k"], mask: Float[Array, " k"], damping: Float[Array, ""]
) -> Float[Array, " k"]:
    """Solve `(JᵀJ + damping · diag) step = Jᵀr`, with each parameter scaled by its own curvature."""
    curvature = jnp.diag(square)
    scale = mask / jnp.sqrt(curvature + 1e-12 * curvature.max() + jnp.finfo(square.dtype).tiny)
    scaled = square * scale[:, None] * scale
    return scale * jnp.linalg.solve(scaled + damping * jnp.eye(len(gradient)), gradient * scale)


def _omega(parameters: Parameters) -> Float[Array, "layers 2 2"]:
    """The ω of DIAG's parameters `(p_x, p_y, q_x, q_y)`."""
    return Diagonal(parameters[..., :2], parameters[..., 2:], 1, 1).omega
