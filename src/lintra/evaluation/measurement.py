"""Measurements as values: what figures and the report need of the models of a zoo, each measured once."""

import abc
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from lintra.arguments import KeyLike, random_key
from lintra.runtime.processes import as_completed
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.collection import UnknownModelError, Zoo

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class AbstractMeasurement(abc.ABC, Generic[Result_co]):
    """Something to measure on the models of a zoo. A subclass is a frozen dataclass, so that equal ones are one.

    It must be importable, since it is sent to other processes.
    """

    @abc.abstractmethod
    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> Result_co:
        """Measure it.

        Args:
            zoo: The models.
            num_sequences: Number of fresh sequences for a noise prior. What is measured at each of many noise
                levels takes one block of sequences at each, whatever this number is.
            key: Randomness, from which each measurement makes its own.
            progress: Told while it is measured.

        Raises:
            UnknownModelError: If models are missing without which there is no result.
        """


class Results:
    """Results of measurements, by the measurement.

    Args:
        values: Results, or the error of a measurement for which models are missing.
    """

    def __init__(self, values: Mapping[AbstractMeasurement[Any], Any]):
        self._values = dict(values)

    def __getitem__(self, need: AbstractMeasurement[Result]) -> Result:
        """Return the result of a measurement, or raise `UnknownModelError` if models are missing for it."""
        if need not in self._values:
            raise ValueError(f"`need` must be one of the measurements that were made, got {need}.")
        value = self._values[need]
        if isinstance(value, UnknownModelError):
            raise value
        return value


def measure_all(
    needs: Iterable[AbstractMeasurement[Any]],
    zoo: Zoo,
    *,
    executor: Executor | None = None,
    num_sequences: int = 1_000_000,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> Results:
    """Measure everything that is needed, equal measurements once.

    Args:
        needs: What to measure, the longest first.
        zoo: The models.
        executor: Runs each measurement in a process of its own. `None` (default): measure in this process.
        num_sequences: Number of fresh sequences for a noise prior.
        key: Randomness, a whole number or a key.
        progress: Told after every measurement, or during each of them without an executor.

    Returns:
        The results. Where models are missing for a measurement, asking for its result raises `UnknownModelError`.
    """
    different = list(dict.fromkeys(needs))
    if executor is None:
        settings: dict[str, Any] = {"num_sequences": num_sequences, "key": key, "progress": progress}
        return Results({need: _result_or_error(need, zoo, **settings) for need in different})
    key_data = np.asarray(jax.random.key_data(random_key(key)))  # keys cannot be pickled
    futures = {
        executor.submit(_measure_in_process, need, zoo.path, num_sequences, key_data): need for need in different
    }
    completed = as_completed(futures, progress, "measuring")
    return Results({futures[future]: future.result() for future in completed})


def _measure_in_process(
    need: AbstractMeasurement[Any], zoo_file: Path, num_sequences: int, key_data: np.ndarray
) -> Any:
    key = jax.random.wrap_key_data(jnp.asarray(key_data))
    return _result_or_error(need, Zoo(zoo_file), num_sequences=num_sequences, key=key)


def _result_or_error(need: AbstractMeasurement[Any], zoo: Zoo, **settings: Any) -> Any:
    try:
        return need.measure(zoo, **settings)
    except UnknownModelError as error:
        return error
