"""A model that is used safely: which one answers, and whether its weights are sound."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lintra import zoo
from lintra.baselines.bayes import Bayes, UnitBlindBayes
from lintra.models.adapters import InOwnUnits, Rescaled
from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.gdpp import GDPlusPlus
from lintra.predictor import AbstractLayered
from lintra.problem.noise import AbstractNoise, parse_noise
from lintra.regression import soundness, specialists
from lintra.statistics.gram import GramStatistics

_PRIOR = "uniform(0,5)"  # of a model that does not say what it was trained on


class Solver(eqx.Module):
    """A model with all that is needed to use it safely.

    Args:
        predictor: The linear transformer, adapted to other context lengths and units where that is wanted.
        noise: The noise prior that it was trained on.
    """

    predictor: AbstractLayered
    noise: AbstractNoise
    mean_noise_var: Float[Array, ""]

    def __init__(self, predictor: AbstractLayered, noise: str | AbstractNoise):
        self.predictor, self.noise = predictor, parse_noise(noise)
        self.mean_noise_var = jnp.asarray(self.noise.second_moment)  # E[σ²], here since it is not traceable

    def judge(
        self, stats: GramStatistics, weights: Float[Array, "b d"]
    ) -> tuple[Bool[Array, " b"], Bool[Array, " b"]]:
        """Judge the model's weights at little cost.

        Returns:
            Whether weights are finite and fit no worse than zero, and whether the context is typical of training.
            Where both hold the weights are trusted; where only the first holds, `compare` decides.
        """
        typical = soundness.is_typical(stats)
        if not self.any_unit:
            typical &= soundness.has_typical_labels(stats, self.label_var(stats.dim))
        return soundness.fits(stats, weights), typical

    def compare(
        self, stats: GramStatistics, weights: Float[Array, "b d"]
    ) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
        """Compare the model's weights with the Bayes predictor's.

        Returns:
            The Bayes predictor's weights, or zeros where they are not finite, and whether the model's are sound.
        """
        bayes = UnitBlindBayes(self.noise) if self.any_unit else Bayes(self.noise)
        unit = stats.label_rms if self.any_unit else jnp.ones_like(stats.label_rms)
        best, excess = bayes.compare(stats.in_unit(unit), weights / unit[..., None])
        best = jnp.where(jnp.isfinite(best).all(axis=-1, keepdims=True), best * unit[..., None], 0)
        return best, soundness.fits(stats, weights) & (excess <= soundness.MAX_EXCESS_RISK)

    def diagnose(self, stats: GramStatistics, *, centred: bool) -> Int[Array, " b"]:
        """Return for each of several contexts why the model is not sound, as places in `list(Causes)`."""
        label_var = None if self.any_unit else self.label_var(stats.dim)
        return soundness.diagnose(stats, label_var=label_var, centred=centred)

    @property
    def any_unit(self) -> bool:
        """Whether labels may come in any unit."""
        return isinstance(self.predictor, InOwnUnits)

    def label_var(self, dim: int) -> Float[Array, ""]:
        """The mean square of the labels in training, `d + E[σ²]`."""
        return dim + self.mean_noise_var


def is_auto(model: object) -> bool:
    """Whether the nearest specialist is asked for."""
    return isinstance(model, str) and model == "auto"


def solver(model: str | Path | AbstractModel | Solver, dim: int, context: int) -> Solver:
    """What will solve contexts of this many examples: a specialist (`auto`), or a model that is given.

    Args:
        model: `auto`, a published name, a model file, a model, or a solver.
        dim: Number of inputs.
        context: Number of examples.
    """
    if isinstance(model, Solver):
        return model
    if is_auto(model):
        return Solver(specialists.adapted(specialists.load_nearest(dim, context)), specialists.prior(dim))
    found, noise = given_model(model, dim)
    return Solver(Rescaled(found), noise)


def given_model(model: object, dim: int) -> tuple[AbstractModel, str]:
    """Return a model by its name, its file or itself, for so many inputs, and its noise prior.

    Raises:
        TypeError: If `model` is none of these.
        ValueError: If it is for another number of inputs.
    """
    if not isinstance(model, str | Path | AbstractModel):
        raise TypeError(
            f"`model` must be `auto`, a published name, a model file or a model, got {type(model).__name__}."
        )
    found, noise = (model, None) if isinstance(model, AbstractModel) else zoo.find(str(model))
    if found.dim != dim and isinstance(found, Diagonal | GDPlusPlus):
        found = found.at(dim)
    if found.dim != dim:
        raise ValueError(
            f"`model` is for {found.dim} inputs, and there are {dim}. DIAG and GD++ serve any number."
        )
    return found, noise or _PRIOR
