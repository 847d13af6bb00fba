"""A store of trained cells: one file per cell, named by the model and by a hash of everything it depends on.

The files do not depend on when, where or how fast they were made, so two stores can be compared byte by byte.
Times are in the journal beside them.
"""

import json
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock

from lintra.models.base import AbstractModel
from lintra.runtime.files import append_jsonl
from lintra.runtime.progress import SILENT, Progress
from lintra.sweep.grid import Cell
from lintra.training.recipes import recipe_name
from lintra.zoo.model_file import load, read_metadata, save


class Store:
    """A folder of trained cells.

    A file that is damaged, empty or of another model counts as missing.

    Args:
        folder: The directory.
        progress: Told once about each file that counts as missing. Default: not shown.
    """

    def __init__(self, folder: Path, progress: Progress = SILENT):
        self.folder, self._progress = folder, progress
        self._checked: dict[Path, tuple[tuple[int, int], bool]] = {}  # by path: time and size, and whether intact

    def prepare(self) -> None:
        """Make the folder if it does not exist, and check that it can be written to, before hours of work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "journal.jsonl").open("a"):
            pass

    def path(self, cell: Cell) -> Path:
        """The file of a cell."""
        return self.folder / f"{cell.name}-{cell.digest}.safetensors"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Cells whose files do not exist or are damaged. A file is read again only when it has changed."""
        return [cell for cell in cells if not self._is_intact(cell)]

    def holds(self, cell: Cell) -> bool:
        """Whether a cell is stored and intact. A damaged file is renamed to `*.damaged`."""
        if self._is_intact(cell):
            return True
        path = self.path(cell)
        if path.exists():
            os.replace(path, path.with_suffix(".damaged"))
        return False

    def _is_intact(self, cell: Cell) -> bool:
        path = self.path(cell)
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        version = status.st_mtime_ns, status.st_size
        checked, intact = self._checked.get(path, (None, False))
        if checked != version:
            intact = self._check(cell)
            self._checked[path] = version, intact
        return intact

    def _check(self, cell: Cell) -> bool:
        """Read a cell's file, with a message if it cannot be used."""
        spec = cell.spec
        try:
            model = self.load(cell)
            actual = model.family, model.num_layers, model.num_heads, model.dim, model.num_examples
            sizes = spec.num_layers, spec.num_heads, spec.problem.dim, spec.problem.num_examples
            if actual != (spec.family, *sizes):
                raise ValueError("it holds another model.")
        except ValueError as error:
            self._progress.message(f"The file of {cell.name} cannot be used and counts as missing: {error}")
            return False
        return True

    def lock(self, cell: Cell) -> FileLock:
        """A lock, held by the process that trains a cell."""
        folder = self.folder / ".locks"
        folder.mkdir(exist_ok=True)
        return FileLock(folder / f"{cell.digest}.lock")

    def load(self, cell: Cell) -> AbstractModel:
        """The model of a cell. A file that was cut or altered is rejected."""
        return load(self.path(cell))

    def card(self, cell: Cell) -> dict[str, Any]:
        """Settings of a trained cell, and the metrics of its selection."""
        return json.loads(read_metadata(self.path(cell))["card"])

    def write(self, cell: Cell, model: AbstractModel, metrics: dict[str, Any], seconds: float) -> None:
        """Write a trained cell atomically, then its time into the journal."""
        settings = {"recipe": recipe_name(cell.recipe), **cell.recipe.settings(), "seed": cell.seed}
        save(
            model,
            self.path(cell),
            noise=str(cell.spec.problem.noise),
            card={"settings": settings, "selection": metrics},
        )
        line = {"cell": cell.name, "digest": cell.digest, "seconds": round(seconds, 2), "host": platform.node()}
        append_jsonl(self.folder / "journal.jsonl", line | {"ended": round(time.time())})

    def seconds(self) -> dict[str, float]:
        """Duration of the training of each cell, by its digest, from the journal."""
        path = self.folder / "journal.jsonl"
        times = {}
        for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
            try:
                entry = json.loads(line)
                times[entry["digest"]] = float(entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut, when the disk was full
        return times
