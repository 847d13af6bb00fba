"""Growth in depth: a small layer is inserted at every position, and the best fit is kept.

A layer of exact zeros would stay zero, since P and Q multiply; a small one does not.
"""

import abc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lintra.models.base import AbstractModel
from lintra.models.families import split_heads
from lintra.models.spec import ModelSpec
from lintra.training.growth.random_restarts import restart_search
from lintra.training.least_squares import AbstractLeastSquares, Fit, Parameters, levenberg_marquardt
from lintra.training.stage import AbstractStage, Data, Models, TrainingFailedError
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts

_SCREEN_STEPS = 10  # iterations for each position
_SHORTLIST_STEPS = 15  # iterations for the few best positions
_SHORTLIST = 3
_POLISH_STEPS = 20  # iterations for the best one, at the last depth
_MIN_GAIN = 0.999  # times the value before restarts, below which the fit after them is polished too
_RESTART_STREAM = 3  # folded into a stage's key; `DiagonalGrowth.prepare` uses its children 0, 1 and 2


class GrowthState(eqx.Module):
    """A model that grows.

    Attributes:
        depth: Number of layers so far.
        parameters: Parameters for all layers, zero from `depth` on, so that all depths share one program.
        warm_starts: Parameters of models of full depth, which are tried at the last depth.
        validation_loss: Adjusted loss of the parameters.
    """

    depth: Int[Array, ""]
    parameters: Parameters
    warm_starts: Float[Array, "starts layers heads k"]
    validation_loss: Float[Array, ""]


class FitSchedule(NamedTuple):
    """Sums of squares for the parts of a fit, from the cheapest to the final one.

    Attributes:
        screen: Compares all positions of a new layer.
        shortlist: Compares the best of them, and restarts.
        polish: One or more for the last depth, of which the last one decides.
    """

    screen: AbstractLeastSquares
    shortlist: AbstractLeastSquares
    polish: Sequence[AbstractLeastSquares]


class AbstractGrowth(AbstractStage[GrowthState, Data], Generic[Data]):
    """Layers are added one at a time; a unit of work is one depth."""

    num_unknowns: ClassVar[int]  # k, parameters of a layer and head
    spec: eqx.AbstractVar[ModelSpec]
    num_restarts: eqx.AbstractVar[int]
    screening_steps: eqx.AbstractVar[int]
    refinement_steps: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def new_layers(self) -> Float[np.ndarray, "c k"]:
        """Small layers to insert, in the family's parameters."""

    @abc.abstractmethod
    def from_parameters(self, parameters: Parameters) -> AbstractModel:
        """The model with these parameters."""

    @abc.abstractmethod
    def to_parameters(self, model: AbstractModel) -> Parameters:
        """Parameters of a model of this family or of one that it contains."""

    @abc.abstractmethod
    def least_squares(self, data: Data) -> FitSchedule:
        """The sums of squares of the fit."""

    @abc.abstractmethod
    def validation_loss(self, parameters: Parameters, data: Data) -> Float[Array, ""]:
        """Adjusted loss of these parameters."""

    def start(self, models: Models, warm_starts: WarmStarts = NO_WARM_STARTS) -> GrowthState:
        """No layers, or those of a shallower model."""
        shape = self.spec.num_layers, self.spec.num_heads, self.num_unknowns
        full_depth = [self.to_parameters(model) for model in self.full_depth_models(models, warm_starts)]
        parameters = jnp.zeros((0, *shape[1:]))
        shallower = warm_starts.shallower
        if shallower is not None and shallower.family == self.spec.family:
            parameters = self.to_parameters(shallower)
            parameters = parameters[np.asarray(parameters).any(axis=(1, 2))]  # layers of zeros would stay zero
        return GrowthState(
            depth=jnp.asarray(len(parameters), int),
            parameters=jnp.zeros(shape).at[: len(parameters)].set(parameters),
            warm_starts=jnp.stack(full_depth) if full_depth else jnp.zeros((0, *shape)),
            validation_loss=jnp.asarray(jnp.inf),
        )

    def full_depth_models(self, models: Models, warm_starts: WarmStarts) -> list[AbstractModel]:
        """Models of full depth, which are tried at the last depth too."""
        return []

    def advance(self, state: GrowthState, data: Data) -> GrowthState:
        """Add one layer."""
        schedule, depth = self.least_squares(data), int(state.depth) + 1
        is_last = depth == self.spec.num_layers
        starts = self._insertions(np.asarray(state.parameters), depth)
        if is_last:
            starts += list(np.asarray(state.warm_starts))
        mask = jnp.zeros(state.parameters.shape).at[:depth].set(1.0)
        fits = _screen(schedule, starts, mask)
        if is_last:
            fits = self._last_fits(schedule, _best(fits, 1)[0], mask)
            if depth > 1:  # the model so far, with a layer of zeros
                fits.append(Fit(state.parameters, schedule.polish[-1].value(state.parameters)))
        best = _best(fits, 1)[0]
        if not np.isfinite(best.value):
            raise TrainingFailedError(
                f"No position of layer {depth} gives a finite loss. Try fewer layers, or another seed."
            )
        return replace(
            state,
            depth=jnp.asarray(depth, int),
            parameters=best.parameters,
            validation_loss=self.validation_loss(best.parameters, data),
        )

    def _insertions(self, parameters: Float[np.ndarray, "layers heads k"], depth: int) -> list[np.ndarray]:
        """A new layer at every position; heads share its parameters unevenly, so that training separates them."""
        shares = split_heads(self.spec.num_heads)[:, None] ** 0.5
        return [
            np.insert(parameters, position, new_layer * shares, axis=0)[: len(parameters)]
            for position in range(depth)
            for new_layer in self.new_layers
        ]

    def _last_fits(self, schedule: FitSchedule, fit: Fit, mask: Parameters) -> list[Fit]:
        """The best fit polished, and what restarts from it find, if that is better."""
        near = levenberg_marquardt(schedule.shortlist, fit.parameters, mask, _POLISH_STEPS)
        far = restart_search(
            schedule.shortlist,
            near,
            key=self.restart_key,
            num_restarts=self.num_restarts,
            screening_steps=self.screening_steps,
            refinement_steps=self.refinement_steps,
        )
        candidates = [near, far] if far.value < _MIN_GAIN * near.value else [near]
        return [_polish(schedule, candidate, mask) for candidate in candidates]

    @property
    def restart_key(self) -> Array:
        """Randomness of the restarts."""
        return jax.random.fold_in(self.key, _RESTART_STREAM)

    def progress(self, state: GrowthState) -> tuple[int, int]:
        """In layers."""
        return int(state.depth), self.spec.num_layers

    def metrics(self, state: GrowthState) -> dict[str, Any]:
        """Depth and adjusted loss."""
        return {"depth": int(state.depth), "validation_loss": float(state.validation_loss)}

    def finish(self, state: GrowthState) -> AbstractModel:
        """The grown model."""
        return self.from_parameters(state.parameters)


def _screen(schedule: FitSchedule, starts: list[np.ndarray], mask: Parameters) -> list[Fit]:
    """A few iterations from each start, and some more from the best ones."""
    fits = [levenberg_marquardt(schedule.screen, jnp.asarray(start), mask, _SCREEN_STEPS) for start in starts]
    return [
        levenberg_marquardt(schedule.shortlist, fit.parameters, mask, _SHORTLIST_STEPS)
        for fit in _best(fits, _SHORTLIST)
    ]


def _polish(schedule: FitSchedule, fit: Fit, mask: Parameters) -> Fit:
    """Fit to more and more, at last to the sum of squares that decides."""
    for problem in schedule.polish[:-1]:
        fit = levenberg_marquardt(problem, fit.parameters, mask, _POLISH_STEPS // 2)
    return levenberg_marquardt(schedule.polish[-1], fit.parameters, mask, _POLISH_STEPS)


def _best(fits: list[Fit], count: int) -> list[Fit]:
    """The fits with the smallest values; one that is not a number counts as infinite."""
    return sorted(fits, key=lambda fit: float(jnp.nan_to_num(fit.value, nan=jnp.inf)))[:count]
