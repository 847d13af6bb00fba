"""A run folder: settings, metrics and checkpoints, from which an interrupted run is resumed.

settings.json                     all settings, and the versions of the software
metrics.jsonl                     one line after each unit of work
checkpoint.safetensors            the last state; checkpoint.previous.safetensors has the one before
model.safetensors, result.json    at the end
"""

import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from filelock import FileLock, Timeout
from jaxtyping import Array, PyTree

from lintra._version import __version__
from lintra.kernel import library
from lintra.models.families import FAMILIES
from lintra.runtime.files import append_jsonl, write_atomic, write_json
from lintra.runtime.progress import SILENT, Progress
from lintra.training.stage import Models, State
from lintra.zoo.tensors import read_tensors, write_tensors

_FORMAT = "lintra-checkpoint-1"


class RunFolder:
    """A folder that belongs to one run at a time.

    Args:
        folder: The directory, made if it does not exist.
        settings: Settings of the run. A folder of another run is rejected.
        versions: Versions of the software. A change gives a message, since results may differ in their last bits.
        progress: Told about changed versions and damaged checkpoints. Default: not shown.
        interval: Seconds between two checkpoints inside a stage. Default: 2.

    Attributes:
        stage: Index of the stage at which the run is resumed.
        models: Models of the stages before.
        seconds: Duration of the run up to where it is resumed.
        last_metrics: The last line of metrics up to there. Empty if there is none.
    """

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any],
        versions: dict[str, str],
        *,
        progress: Progress = SILENT,
        interval: float = 2.0,
    ):
        self.folder, self._progress, self._interval = folder, progress, interval
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise ValueError(
                f"`folder` '{folder}' is in use by another run. Wait for it, or choose another folder."
            ) from None
        try:
            self._remove_leftovers()
            self._check_settings(settings, versions)
            self.stage, self.models, self._arrays, self._lines = 0, {}, {}, 0
            self._restore()
            self._cut_metrics()
        except BaseException:
            self.close()
            raise
        self._written = time.monotonic()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.release()

    def state(self, template: State) -> State:
        """The stored state of the present stage, or the template if the stage has not started."""
        if not self._arrays:
            return template
        leaves, structure = jax.tree.flatten_with_path(template)
        expected = {_path(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}
        if expected != {name: (array.shape, array.dtype) for name, array in self._arrays.items()}:
            raise ValueError(
                f"`folder` '{self.folder}' was written by another version of lintra. Choose another folder."
            )
        return jax.tree.unflatten(structure, [jnp.asarray(self._arrays[name]) for name in expected])

    def log_metrics(self, line: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        append_jsonl(self.folder / "metrics.jsonl", line)
        self._lines += 1

    def checkpoint(self, stage: int, state: PyTree[Array], models: Models, *, now: bool = False) -> None:
        """Store the state of a stage, if it is time to; the last checkpoint becomes the previous one."""
        if not now and time.monotonic() - self._written < self._interval:
            return
        leaves, _ = jax.tree.flatten_with_path(state)
        arrays = {f"state{_path(path)}": np.asarray(leaf) for path, leaf in leaves}
        for name, model in models.items():
            arrays |= {f"model/{name}/{part}": np.asarray(value) for part, value in model.parameters().items()}
        sizes = {name: [model.family, model.num_examples, model.dim] for name, model in models.items()}
        metadata = {"format": _FORMAT, "stage": str(stage), "lines": str(self._lines), "models": json.dumps(sizes)}
        last, previous = self._checkpoints()
        if last.exists():
            spare = previous.with_suffix(".spare")
            spare.unlink(missing_ok=True)
            os.link(last, spare)
            os.replace(spare, previous)
        write_tensors(last, arrays, metadata)
        self._written = time.monotonic()

    def write_result(self, row: dict[str, Any]) -> None:
        """Write `result.json`."""
        write_json(self.folder / "result.json", row)

    def _checkpoints(self) -> tuple[Path, Path]:
        return self.folder / "checkpoint.safetensors", self.folder / "checkpoint.previous.safetensors"

    def _check_settings(self, settings: dict[str, Any], versions: dict[str, str]) -> None:
        """Write the settings, or reject them if they differ from those of the run in the folder."""
        path = self.folder / "settings.json"
        settings = json.loads(json.dumps(settings))
        if path.exists():
            try:
                before = json.loads(path.read_text())
                old, old_versions = before["settings"], before["versions"]
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f"`folder` '{self.folder}' has settings that cannot be read. "
                    "Choose another folder, or remove it."
                ) from None
            changed = [name for name in {**old, **settings} if old.get(name) != settings.get(name)]
            if changed:
                name = changed[0]
                raise ValueError(
                    f"`folder` '{self.folder}' holds a run with {name} = {old.get(name)}, "
                    f"not {settings.get(name)}. Choose another folder, or remove it."
                )
            if old_versions != versions:
                self._progress.message(
                    f"The run in '{self.folder}' was started with other versions: its last bits may differ."
                )
            return
        write_json(path, {"settings": settings, "versions": versions})

    def _remove_leftovers(self) -> None:
        """Remove temporary files of a process that was killed while it was writing."""
        for pattern in (".*.safetensors.*", ".*.json*.*", "*.spare"):
            for path in self.folder.glob(pattern):
                path.unlink()

    def _restore(self) -> None:
        """Load the last intact checkpoint. A damaged one is renamed to `*.damaged`."""
        for path in filter(Path.exists, self._checkpoints()):
            try:
                self._load_checkpoint(*read_tensors(path, _FORMAT))
                return
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                os.replace(path, path.with_suffix(".damaged"))
                self._progress.message(
                    f"Checkpoint '{path.name}' cannot be used, so the run resumes from the one before it, if any: "
                    f"{error}"
                )

    def _load_checkpoint(self, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
        models = {}
        for name, (family, num_examples, dim) in json.loads(metadata["models"]).items():
            start = f"model/{name}/"
            parameters = {part.removeprefix(start): a for part, a in arrays.items() if part.startswith(start)}
            models[name] = FAMILIES[family].from_parameters(parameters, num_examples, dim)
        self.stage, self._lines, self.models = int(metadata["stage"]), int(metadata["lines"]), models
        self._arrays = {name.removeprefix("state"): a for name, a in arrays.items() if name.startswith("state")}

    def _cut_metrics(self) -> None:
        """Remove the lines after the last checkpoint, which will be written again."""
        path = self.folder / "metrics.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        logged = lines[: self._lines]
        write_atomic(path, b"".join(logged))
        self.last_metrics: dict[str, Any] = json.loads(logged[-1]) if logged else {}
        self.seconds = float(self.last_metrics.get("seconds", 0.0))


def versions() -> dict[str, str]:
    """Versions of all software that can change the last bits of a result."""
    return {
        "lintra": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "kernel": library.instruction_set() or "plain JAX",
    }


def _path(path: tuple[Any, ...]) -> str:
    return "/" + jax.tree_util.keystr(path, simple=True, separator="/")
