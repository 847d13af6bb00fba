"""A recipe is a list of stages, and a stage moves a state of arrays forward in small, repeatable pieces of work.

Everything that a stage will do follows from its settings, its key and its state. So a run can stop after
any piece, be written down, and go on to the same bits.
"""

import abc
from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Key, PyTree

from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression

State = dict[str, PyTree[Array]]
"""Arrays by name; what a stage has come to."""

Models = dict[str, AbstractModel]
"""What the stages before have found, by name."""

Shelf = dict[Hashable, Any]
"""What stages have prepared, by what it depends on: stages of several tasks may share one."""


class TrainingFailedError(Exception):
    """A run that cannot be saved; the message says what happened and what to change."""


class AbstractStage(eqx.Module):
    """One stage of a recipe."""

    name: eqx.AbstractVar[str]
    key: eqx.AbstractVar[Key[Array, ""]]

    @property
    @abc.abstractmethod
    def material(self) -> Hashable:
        """What `prepare` depends on: stages in which it is equal share what one of them has prepared."""

    @abc.abstractmethod
    def prepare(self) -> Any:
        """Make what every piece of work needs and no state has to carry, such as a pool of sequences."""

    @abc.abstractmethod
    def start(self, models: Models) -> State:
        """The state before the first piece of work."""

    @abc.abstractmethod
    def advance(self, state: State, material: Any) -> State:
        """Do one piece of work, of a few seconds at most."""

    @abc.abstractmethod
    def progress(self, state: State) -> tuple[int, int]:
        """How many pieces of work are done, and how many there are at most; equal at the end."""

    @abc.abstractmethod
    def metrics(self, state: State) -> dict[str, Any]:
        """What the log says after a piece of work."""

    @abc.abstractmethod
    def finish(self, state: State) -> AbstractModel:
        """The model that the stage leaves behind under its name."""


def token(problem: NoisyRegression, key: Key[Array, ""]) -> Hashable:
    """A problem and a key as something to look things up by."""
    return str(jax.tree.leaves(problem)), str(problem), jax.random.key_data(key).tobytes()
