"""A run folder: settings, metrics and checkpoints, so that a run can be interrupted anyhow and goes on.

settings.json                      what is trained and how, resolved, with the versions it is trained by
metrics.jsonl                      one line after every piece of work
checkpoint.safetensors             the last state, and in checkpoint.previous.safetensors the one before
model.safetensors, outcome.json    at the end
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from filelock import FileLock, Timeout

from lintra.models.families import FAMILIES
from lintra.runtime.files import finite, write_aside, write_json
from lintra.runtime.progress import Say
from lintra.training.stage import Models, State
from lintra.zoo.tensors import read_tensors, write_tensors

_FORMAT = "lintra-checkpoint-1"


class Run:
    """A folder that belongs to one run at a time.

    Arguments:
        folder: Where to keep it; made if it is not there.
        settings: What the run is; a folder of another run is refused.
        versions: What it is run by; a change is said, since results may then differ in their last bits.
        say: Tells people what happened.
        interval: Seconds between two checkpoints inside a stage.

    Attributes:
        seconds: How long the run has been going in all, up to where it goes on.
    """

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any],
        versions: dict[str, str],
        *,
        say: Say,
        interval: float = 2.0,
    ):
        self.folder, self._say, self._interval = folder, say, interval
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise ValueError(
                f"`folder` '{folder}' is in use by another run. Wait for it, or choose another folder."
            ) from None
        try:
            self._sweep()
            self._settle(settings, versions)
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
        """The state that was reached in the stage under way, or the template if it has not begun."""
        if not self._arrays:
            return template
        leaves, structure = jax.tree.flatten_with_path(template)
        expected = {_path(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}
        if expected != {name: (array.shape, array.dtype) for name, array in self._arrays.items()}:
            raise ValueError(
                f"`folder` '{self.folder}' was written by another version of lintra. Choose another folder."
            )
        return jax.tree.unflatten(structure, [jnp.asarray(self._arrays[name]) for name in expected])

    def record(self, line: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(finite(line)) + "\n")
        self._lines += 1

    def checkpoint(self, stage: int, state: State, models: Models, *, now: bool = False) -> None:
        """Write down the state of a stage, if it is time to; the last checkpoint becomes the previous one."""
        if not now and time.monotonic() - self._written < self._interval:
            return
        leaves, _ = jax.tree.flatten_with_path(state)
        arrays = {f"state{_path(path)}": np.asarray(leaf) for path, leaf in leaves}
        for name, model in models.items():
            arrays |= {f"model/{name}/{part}": np.asarray(value) for part, value in model.parameters().items()}
        kinds = {name: [model.family, model.context, model.dim] for name, model in models.items()}
        metadata = {"format": _FORMAT, "stage": str(stage), "lines": str(self._lines), "models": json.dumps(kinds)}
        last, previous = self._checkpoints()
        if last.exists():
            spare = previous.with_suffix(".spare")
            spare.unlink(missing_ok=True)
            os.link(last, spare)
            os.replace(spare, previous)
        write_tensors(last, arrays, metadata)
        self._written = time.monotonic()

    def conclude(self, outcome: dict[str, Any]) -> None:
        """Write down what came out."""
        write_json(self.folder / "outcome.json", outcome)

    def _checkpoints(self) -> tuple[Path, Path]:
        return self.folder / "checkpoint.safetensors", self.folder / "checkpoint.previous.safetensors"

    def _settle(self, settings: dict[str, Any], versions: dict[str, str]) -> None:
        """Write the settings down, or see that they are the same as before."""
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
                self._say(f"The run in `{self.folder}` was begun with other versions: its last bits may differ.")
            return
        write_json(path, {"settings": settings, "versions": versions})

    def _sweep(self) -> None:
        """Remove what a kill in the middle of writing has left."""
        for pattern in (".*.safetensors.*", ".*.json*.*", "*.spare"):
            for path in self.folder.glob(pattern):
                path.unlink()

    def _restore(self) -> None:
        """Take up the last checkpoint that is whole; one that is not is put out of the way."""
        for path in filter(Path.exists, self._checkpoints()):
            try:
                self._take(*read_tensors(path, _FORMAT))
                return
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                os.replace(path, path.with_suffix(".damaged"))
                self._say(
                    f"Checkpoint '{path.name}' cannot be used, so the run goes on from the one before it, if any: "
                    f"{error}"
                )

    def _take(self, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
        models = {}
        for name, (family, context, dim) in json.loads(metadata["models"]).items():
            start = f"model/{name}/"
            own = {part.removeprefix(start): value for part, value in arrays.items() if part.startswith(start)}
            models[name] = FAMILIES[family].from_parameters(own, context, dim)
        self.stage, self._lines, self.models = int(metadata["stage"]), int(metadata["lines"]), models
        self._arrays = {name.removeprefix("state"): a for name, a in arrays.items() if name.startswith("state")}

    def _cut_metrics(self) -> None:
        """Forget the lines after the last checkpoint: they will be written again."""
        path = self.folder / "metrics.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        kept = lines[: self._lines]
        write_aside(path, b"".join(kept))
        self.seconds = float(json.loads(kept[-1]).get("seconds", 0.0)) if kept else 0.0


def _path(path: tuple[Any, ...]) -> str:
    return "/" + jax.tree_util.keystr(path, simple=True, separator="/")
