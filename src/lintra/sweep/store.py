"""Where a sweep keeps what it has trained: one file a cell, named by what it is and by a hash of how it was made.

The files hold nothing that depends on when, where or how fast they were made, so that two stores can be compared
byte by byte. Times are in the journal beside them.
"""

import json
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock

from lintra.models import AbstractModel
from lintra.storage import load, read_metadata, save
from lintra.sweep.grid import Cell


class Store:
    """A folder of trained cells.

    Arguments:
        folder: Where it is.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def prepare(self) -> None:
        """Make the folder if it is not there, and see that it can be written to, before hours of work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "journal.jsonl").open("a"):
            pass

    def path(self, cell: Cell) -> Path:
        """Where a cell is, or will be."""
        return self.folder / f"{cell.name}-{cell.key}.safetensors"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those cells that are not there."""
        return [cell for cell in cells if not self.path(cell).exists()]

    def holds(self, cell: Cell) -> bool:
        """Whether a cell is there and whole; a file that is not whole is put out of the way."""
        if self.missing([cell]):
            return False
        try:
            self.load(cell)
        except ValueError:
            os.replace(self.path(cell), self.path(cell).with_suffix(".damaged"))
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
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                entry = json.loads(line)
                times[entry["key"]] = float(entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut when a disk was full
        return times
