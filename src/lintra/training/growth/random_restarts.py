"""Restarts of a fit from randomly perturbed parameters."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from lintra.training.least_squares import AbstractLeastSquares, Fit, levenberg_marquardt

_PERTURBATIONS = 0.05, 0.2, 0.5  # relative sizes, one of which is chosen at random
_REFINE_WITHIN = 2.0  # times the best value, up to which a fit is refined

Perturbation = tuple[Float[np.ndarray, "layers heads k"], Int[np.ndarray, " layers"]]
"""Factors of all parameters, and an order of the layers."""


def perturbations(key: Key[Array, ""], num_restarts: int, shape: tuple[int, ...]) -> Iterator[Perturbation]:
    """Draw perturbations.

    Args:
        key: Randomness. The same key gives the same sequence.
        num_restarts: Number of perturbations.
        shape: Shape of the parameters, (layers, heads, k).

    Yields:
        Factors `1 + s z` with a random size s and standard normal z, and an order of the layers, which is a random
        permutation half the time.
    """
    # All words of the key seed the generator, so that different keys give independent streams.
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    for _ in range(num_restarts):
        factors = 1 + rng.choice(_PERTURBATIONS) * rng.normal(size=shape)
        order = rng.permutation(shape[0]) if rng.random() < 0.5 else np.arange(shape[0])
        yield factors, order


def restart_search(
    problem: AbstractLeastSquares,
    start: Fit,
    *,
    key: Key[Array, ""],
    num_restarts: int,
    screening_steps: int,
    refinement_steps: int,
) -> Fit:
    """Fit again and again from perturbations of the best parameters so far.

    Args:
        problem: The sum of squares.
        start: The first parameters, and their value.
        key: Randomness of the perturbations.
        num_restarts: Number of restarts.
        screening_steps: Number of iterations of each restart.
        refinement_steps: Number of further iterations where the value is near the best one.

    Returns:
        The best fit, which is `start` where no restart is better.
    """
    best = start
    mask = jnp.ones_like(best.parameters)
    for factors, order in perturbations(key, num_restarts, best.parameters.shape):
        fit = levenberg_marquardt(problem, (best.parameters * factors)[order], mask, screening_steps)
        if fit.value < _REFINE_WITHIN * best.value:
            fit = levenberg_marquardt(problem, fit.parameters, mask, refinement_steps)
        if fit.value < best.value:
            best = fit
    return best
