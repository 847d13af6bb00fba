"""An experiment: training whose result is stored with its settings and seed, and judged without training again."""

import abc
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from lintra import arguments
from lintra.display import Row
from lintra.experiments.stored import StoredExperiment, StoredPart
from lintra.kernel.precision import in_64_bits
from lintra.runtime.progress import SILENT, Progress
from lintra.training.checkpoints import versions
from lintra.training.version import TRAINING_VERSION


@dataclass(frozen=True)
class AbstractExperiment(abc.ABC):
    """Settings of an experiment, and how its rows follow from them.

    It consists of parts, each of which is stored when it is done, so that an interrupted experiment is resumed.

    Args:
        seed: Number of the random key of everything. Default: 0.
    """

    name: ClassVar[str]
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """Everything that the rows depend on."""
        return asdict(self) | {"training_version": TRAINING_VERSION}

    @abc.abstractmethod
    def parts(self) -> list[str]:
        """Names of the parts, in their order."""

    @abc.abstractmethod
    def run(self, part: str, progress: Progress = SILENT) -> list[Row]:
        """Do one part, and return its rows, all with the same columns."""


def run_experiment(experiment: AbstractExperiment, path: Path, *, progress: Progress = SILENT) -> StoredExperiment:
    """Run an experiment, and store it after every part.

    Args:
        experiment: The experiment.
        path: The file. Parts that it has from the same settings are not run again.
        progress: Told about each part.

    Returns:
        The stored experiment.

    Raises:
        ValueError: If the file is one of other settings, or no stored experiment.
    """
    arguments.random_key(experiment.seed)
    stored = StoredExperiment(experiment.name, experiment.settings(), versions())
    if path.exists():
        stored = _same_settings(StoredExperiment.read(path), stored, path)
    for part in experiment.parts():
        if part in stored.parts:
            progress.message(f"{part} is stored in '{path}'.")
            continue
        started = time.monotonic()
        with in_64_bits():
            rows = experiment.run(part, progress)
        done = StoredPart(round(time.monotonic() - started, 1), rows)
        stored = replace(stored, parts=stored.parts | {part: done})
        stored.write(path)
    return stored


def _same_settings(found: StoredExperiment, expected: StoredExperiment, path: Path) -> StoredExperiment:
    """Return what was found in a file, or raise if it is of another experiment or other settings."""
    if found.name != expected.name:
        raise ValueError(
            f"`path` '{path}' has the experiment {found.name}, not {expected.name}: name another file."
        )
    for name in {**found.settings, **expected.settings}:
        if found.settings.get(name) != (value := expected.plain_settings().get(name)):
            raise ValueError(
                f"`path` '{path}' was stored with {name} = {found.settings.get(name)}, not {value}: name another "
                "file, or remove it."
            )
    return found
