"""The paper's recipe at full size: the curve and the final loss of a finished run, taken from its folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lintra.display import Row
from lintra.experiments.experiment import AbstractExperiment
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress

_RESULT = ("adjusted_loss", "standard_error", "sequences", "median", "worst", "is_sound")


@dataclass(frozen=True)
class PaperRecipe(AbstractExperiment):
    """A run of `lintra train --recipe paper`, which takes hours. One file has the runs of several models.

    Args:
        folder: The run folder. It must have a result.
    """

    name: ClassVar[str] = "paper-recipe"
    folder: str = ""

    def settings(self) -> dict[str, Any]:
        """None of its own: the settings of every run are in its rows."""
        return {}

    def parts(self) -> list[str]:
        """The run, by its model and key."""
        settings = self._settings()
        return [f"{_spec(settings).name}-seed{settings['key']}"]

    def run(self, part: str, progress: Progress = SILENT) -> list[Row]:
        """The losses on validation sequences, and at the end that on fresh sequences with its standard error."""
        settings, folder = self._settings(), Path(self.folder)
        path = folder / "result.json"
        if not path.exists():
            raise FileNotFoundError(f"`folder` '{folder}' has no result.json: its run is not finished.")
        result = json.loads(path.read_text())
        sizes = {"family": settings["family"], "layers": settings["num_layers"], "noise": settings["noise"]}
        empty = {"step": None, "validation_loss": None, "num_rejected": None, "seconds": None}
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        curve = [sizes | {name: line[name] for name in empty} | dict.fromkeys(_RESULT) for line in lines]
        last = sizes | empty | {"step": lines[-1]["step"]} | {name: result[name] for name in _RESULT}
        settings_row = {"settings": None}
        return [row | settings_row for row in curve] + [last | {"settings": settings}]

    def _settings(self) -> dict[str, Any]:
        path = Path(self.folder) / "settings.json"
        if not self.folder or not path.exists():
            raise FileNotFoundError(f"`folder` '{self.folder}' has no settings.json: name a run folder.")
        settings = json.loads(path.read_text())["settings"]
        if settings.get("recipe") != "paper":
            raise ValueError(
                f"`folder` '{self.folder}' was trained with the recipe {settings.get('recipe')}, not paper."
            )
        return settings


def _spec(settings: dict[str, Any]) -> ModelSpec:
    problem = NoisyRegression(settings["dim"], settings["num_examples"], settings["noise"])
    return ModelSpec(settings["family"], settings["num_layers"], problem, settings["num_heads"])
