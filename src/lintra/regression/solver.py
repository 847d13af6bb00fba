"""A model with its soundness check, and the Bayes predictor as its fallback."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lintra import zoo
from lintra.baselines.bayes import Bayes, UnitBlindBayes
from lintra.models.adapters import Rescaled, UnitBlind
from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.gdpp import GDPlusPlus
from lintra.predictor import AbstractLayered
from lintra.problem.noise import AbstractNoisePrior, parse_noise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.regression import soundness, specialists
from lintra.regression.contexts import pad_rows, take
from lintra.regression.damping import damp
from lintra.regression.soundness import Cause, UnsoundWarning
from lintra.statistics.gram import GramStatistics

_DEFAULT_PRIOR = "uniform(0,5)"  # of a model without a record of its training
_MAX_COMPARED = 4096  # contexts that are compared with the Bayes predictor at once

Exact = Callable[[np.ndarray], GramStatistics]
"""Gives the statistics of some contexts, by their rows, in 64 bits."""


@dataclass(frozen=True)
class Answer:
    """The weights of several contexts.

    Attributes:
        weights: Weights, shape (contexts, d), in 64 bits.
        path: Weights after each layer, shape (contexts, layers, d). `None`: they were not asked for. Where the
            Bayes predictor answered, all layers have its weights.
        fallback: The contexts that the Bayes predictor answered, by their rows, and the cause.
    """

    weights: Float[np.ndarray, "b d"]
    path: Float[np.ndarray, "b layers d"] | None
    fallback: dict[int, Cause]


class Solver(eqx.Module):
    """A model with its soundness check and its fallback.

    Args:
        predictor: The linear transformer, in adapters for other context lengths and units where these are needed.
        noise: The noise prior that the model was trained on.
    """

    predictor: AbstractLayered
    noise: AbstractNoisePrior
    mean_noise_var: Float[Array, ""]

    def __init__(self, predictor: AbstractLayered, noise: str | AbstractNoisePrior):
        self.predictor, self.noise = predictor, parse_noise(noise)
        self.mean_noise_var = jnp.asarray(self.noise.second_moment)  # E[σ²], here since it is not traceable

    def answer(
        self,
        stats: GramStatistics,
        *,
        path: bool = False,
        centred: bool = False,
        exact: Exact | None = None,
    ) -> Answer:
        """Compute the weights of contexts by the model, and by the Bayes predictor where the model is not sound.

        A context is trusted if the model's weights fit it and it is typical of training. Other contexts are
        compared with the Bayes predictor, in 64 bits.

        Args:
            stats: Contexts, with one leading axis.
            path: Whether to return the weights after each layer too. Default `False`.
            centred: Whether inputs were centred, which decides what is named as cause. Default `False`.
            exact: Gives statistics of some contexts in 64 bits. `None` (default): `stats` as they are.

        Returns:
            Weights in the units of `stats`, and the contexts that the Bayes predictor answered.
        """
        # One forward pass, one program; XLA makes far slower loops of the check where it shares it.
        layers = _forward(self, stats, path)
        trusted = np.asarray(_is_trusted(self, stats, layers[:, -1] if path else layers))
        doubtful, fallback = np.flatnonzero(~trusted), dict[int, Cause]()
        layers = np.array(layers, float) if doubtful.size else np.asarray(layers, float)
        for start in range(0, len(doubtful), _MAX_COMPARED):
            rows = doubtful[start : start + _MAX_COMPARED]
            padded = pad_rows(rows)
            precise = take(stats, padded, float) if exact is None else exact(padded)
            weights = layers[padded, -1] if path else layers[padded]
            best, sound, causes = (
                np.asarray(result)[: len(rows)] for result in _compare(self, precise, weights, centred)
            )
            replaced = rows[~sound]
            layers[replaced] = best[~sound][:, None] if path else best[~sound]
            named = (soundness.CAUSES[position] for position in causes[~sound])
            fallback |= dict(zip(replaced.tolist(), named, strict=True))
        return Answer(layers[:, -1], layers, fallback) if path else Answer(layers, None, fallback)

    def is_trusted(self, stats: GramStatistics, weights: Float[Array, "b d"]) -> Bool[Array, " b"]:
        """Return whether weights fit contexts that are typical of training. Elsewhere `compare` decides."""
        typical = soundness.is_typical(stats)
        if not self.is_unit_blind:
            typical &= soundness.has_typical_labels(stats, self.label_var(stats.dim))
        return soundness.fits(stats, weights) & typical

    def compare(
        self, stats: GramStatistics, weights: Float[Array, "b d"]
    ) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
        """Compare the model's weights with the Bayes predictor's.

        Args:
            stats: Contexts.
            weights: The model's weights, shape (contexts, d).

        Returns:
            The Bayes predictor's weights, or zeros where they are not finite, and whether the model's are sound.
        """
        bayes = UnitBlindBayes(self.noise) if self.is_unit_blind else Bayes(self.noise)
        label_scale = stats.label_rms if self.is_unit_blind else jnp.ones_like(stats.label_rms)
        best, excess = bayes.compare(stats.divide_labels(label_scale), weights / label_scale[..., None])
        best = jnp.where(jnp.isfinite(best).all(axis=-1, keepdims=True), best * label_scale[..., None], 0)
        return best, soundness.fits(stats, weights) & (excess <= soundness.MAX_EXCESS_RISK)

    def diagnose(self, stats: GramStatistics, *, centred: bool) -> Int[Array, " b"]:
        """Return why the model is not sound on each of several contexts, as positions in `CAUSES`."""
        label_var = None if self.is_unit_blind else self.label_var(stats.dim)
        return soundness.diagnose(stats, label_var=label_var, centred=centred)

    @property
    def is_unit_blind(self) -> bool:
        """Whether labels may come in any unit."""
        return isinstance(self.predictor, UnitBlind)

    def label_var(self, dim: int) -> Float[Array, ""]:
        """The mean square of the labels in training, `d + E[σ²]`."""
        return dim + self.mean_noise_var


@partial(jax.jit, static_argnums=2)
def _forward(solver: Solver, stats: GramStatistics, path: bool) -> Float[Array, "b ..."]:
    return solver.predictor.layer_weights(stats) if path else solver.predictor.weights(stats)


@jax.jit
def _is_trusted(solver: Solver, stats: GramStatistics, weights: Float[Array, "b d"]) -> Bool[Array, " b"]:
    return solver.is_trusted(stats, weights)


@partial(jax.jit, static_argnums=3)
def _compare(
    solver: Solver, stats: GramStatistics, weights: Float[Array, "b d"], centred: bool
) -> tuple[Float[Array, "b d"], Bool[Array, " b"], Int[Array, " b"]]:
    return *solver.compare(stats, weights), solver.diagnose(stats, centred=centred)


def warn_about(answer: Answer, noun: str = "contexts") -> None:
    """Warn the caller of the function that calls this one if the Bayes predictor answered.

    Args:
        answer: The answer.
        noun: What contexts are called. Default "contexts".
    """
    if answer.fallback:
        message = soundness.describe_fallback(answer.fallback, len(answer.weights), noun)
        warnings.warn(message, UnsoundWarning, stacklevel=3)


def is_auto(model: object) -> bool:
    """Return whether the nearest specialist is asked for."""
    return isinstance(model, str) and model == "auto"


def choose_solver(model: str | Path | AbstractModel | Solver, dim: int, num_examples: int) -> Solver:
    """Return the solver for contexts of one size.

    Args:
        model: `auto` for the nearest specialist, a published name, a model file, a model, or a solver, which is
            returned as it is.
        dim: Number of inputs.
        num_examples: Number of examples.
    """
    if isinstance(model, Solver):
        return model
    selected, noise = find_model(model, dim, num_examples)
    return Solver(specialists.adapt(selected) if is_auto(model) else Rescaled(selected), noise)


def find_model(model: object, dim: int, num_examples: int) -> tuple[AbstractModel, str]:
    """Return a model for contexts of one size, and its noise prior.

    A model by name or from a file is damped, so that it does not explode on unusual contexts. Its thresholds are
    measured from its prior if none are stored, or if it is moved to another number of inputs. A model that is
    given as an object is used as it is.

    Args:
        model: `auto` for the nearest specialist, a published name, a model file, or a model.
        dim: Number of inputs.
        num_examples: Number of examples.

    Raises:
        TypeError: If `model` is none of these.
        ValueError: If it is for another number of inputs.
    """
    if is_auto(model):
        specialist, noise = specialists.load_nearest(dim, num_examples), specialists.prior(dim)
        problem = NoisyRegression(dim, specialist.num_examples, noise)
        return damp(specialist, problem, is_unit_blind=True), noise
    if not isinstance(model, str | Path | AbstractModel):
        raise TypeError(
            f"`model` must be `auto`, a published name, a model file or a model, got {type(model).__name__}."
        )
    if isinstance(model, AbstractModel):
        given, noise = model, None
    else:
        given, noise = zoo.find(str(model))
    if given.dim != dim and isinstance(given, Diagonal | GDPlusPlus):
        given = given.with_dim(dim)
    if not isinstance(model, AbstractModel):
        problem = NoisyRegression(given.dim, given.num_examples, noise or _DEFAULT_PRIOR)
        given = damp(given, problem)
    if given.dim != dim:
        raise ValueError(
            f"`model` is for {given.dim} inputs, and there are {dim}. DIAG and GD++ serve any number."
        )
    return given, noise or _DEFAULT_PRIOR
