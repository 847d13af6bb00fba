"""Where a sweep keeps what it has trained: one file a cell, named by what it is and by a hash of how it was made.

The files hold nothing that depends on when, where or how fast they were made, so that two stores can be compared
byte by byte. Times are in the journal beside them.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock

from lintra.models.base import AbstractModel
from lintra.sweep.grid import Cell
from lintra.zoo.model_file import load, read_metadata, save


class Store:
    """A folder of trained cells.

    A file that is damaged, empty or another model's counts as missing.

    Arguments:
        folder: Where it is.
        say: Told once about every file that counts as missing.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = lambda sentence: None):
        self.folder, self._say = folder, say
        self._checked: dict[Path, tuple[tuple[int, int], bool]] = {}  # by path: time and size, and whether intact

    def prepare(self) -> None:
        """Make the folder if it is not there, and see that it can be written to, before hours of work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "journal.jsonl").open("a"):
            pass

    def path(self, cell: Cell) -> Path:
        """Where a cell is, or will be."""
        return self.folder / f"{cell.name}-{cell.key}.safetensors"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those cells that are not there, or not intact. A file is read again only when it has changed."""
        return [cell for cell in cells if not self._is_intact(cell)]

    def holds(self, cell: Cell) -> bool:
        """Whether a cell is there and intact; a damaged file is renamed to `*.damaged`."""
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
        known, intact = self._checked.get(path, (None, False))
        if known != version:
            intact = self._check(cell)
            self._checked[path] = version, intact
        return intact

    def _check(self, cell: Cell) -> bool:
        """Read a cell's file, and say so if it cannot be used."""
        task = cell.task
        try:
            model = self.load(cell)
            found = model.family, model.num_layers, model.num_heads, model.dim, model.context
            if found != (task.variant, task.layers, task.heads, task.dim, task.context):
                raise ValueError("it holds another model.")
        except ValueError as error:
            self._say(f"The file of {cell.name} cannot be used and counts as missing: {error}")
            return False
        return True

    def lock(self, cell: Cell) -> FileLock:
        """Held by the one who trains a cell."""
        folder = self.folder / ".locks"
        folder.mkdir(exist_ok=True)
        return FileLock(folder / f"{cell.key}.lock")

    def load(self, cell: Cell) -> AbstractModel:
        """A trained cell; a file that was cut or altered is refused."""
        return load(self.path(cell))

    def card(self, cell: Cell) -> dict[str, Any]:
        """What is written down about a trained cell."""
        return json.loads(read_metadata(self.path(cell))["card"])

    def write(self, cell: Cell, model: AbstractModel, metrics: dict[str, Any], seconds: float) -> None:
        """Keep a trained cell: aside and renamed, then the time in the journal."""
        settings = {"recipe": "fast", **cell.recipe.settings(), "seed": cell.seed}
        save(model, self.path(cell), noise=cell.task.noise, card={"settings": settings, "selection": metrics})
        line = {"cell": cell.name, "key": cell.key, "seconds": round(seconds, 2), "host": platform.node()}
        with (self.folder / "journal.jsonl").open("a") as file:
            file.write(json.dumps(line | {"ended": round(time.time())}) + "\n")

    def seconds(self) -> dict[str, float]:
        """How long the training of each cell took, by its hash, from the journal."""
        path = self.folder / "journal.jsonl"
        times = {}
        for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
            try:
                entry = json.loads(line)
                times[entry["key"]] = float(entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut when a disk was full
        return times
