"""A stage of training: a state of arrays that is advanced in small units of work.

Everything that a stage does follows from its settings, its key and its state. So a run can stop after any unit of
work, be stored, and be resumed to the same bits.
"""

import abc
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
from jaxtyping import Array, Key

from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts

State = TypeVar("State")
"""State of a stage: a pytree of arrays."""

Data = TypeVar("Data")
"""Prepared data of a stage, which its state need not contain."""

Models = dict[str, AbstractModel]
"""Models of the stages before, by the stage's name."""

Cache = dict[Hashable, Any]
"""Prepared data by `cache_key`; runs that differ only in family and depth can share one."""


class TrainingFailedError(Exception):
    """Training gave no model, or none that is sound. The message says what happened and what to change."""


class AbstractStage(eqx.Module, Generic[State, Data]):
    """One stage of a recipe."""

    name: eqx.AbstractVar[str]
    key: eqx.AbstractVar[Key[Array, ""]]

    @property
    @abc.abstractmethod
    def cache_key(self) -> Hashable:
        """Everything that `prepare` depends on. Stages with equal keys share the prepared data."""

    @abc.abstractmethod
    def prepare(self) -> Data:
        """Make data that every unit of work needs, such as a pool of sequences."""

    @abc.abstractmethod
    def start(self, models: Models, warm_starts: WarmStarts = NO_WARM_STARTS) -> State:
        """The state before the first unit of work, given the models of earlier stages and warm starts."""

    @abc.abstractmethod
    def advance(self, state: State, data: Data) -> State:
        """Do one unit of work, which takes a few seconds at most."""

    @abc.abstractmethod
    def progress(self, state: State) -> tuple[int, int]:
        """Number of units of work done, and their largest number; equal at the end."""

    @abc.abstractmethod
    def metrics(self, state: State) -> dict[str, Any]:
        """Values to log after a unit of work."""

    @abc.abstractmethod
    def finish(self, state: State) -> AbstractModel:
        """The model of this stage, which later stages find under its name."""


def fingerprint(problem: NoisyRegression, key: Key[Array, ""]) -> Hashable:
    """A hashable value that is equal for equal problems and keys."""
    return str(jax.tree.leaves(problem)), str(problem), jax.random.key_data(key).tobytes()
