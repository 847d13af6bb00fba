"""From a store of trained cells to a zoo: the best seed of every cell, all seeds where figures need them."""

import zlib
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import jax

from lintra import arguments, zoo
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.comparison import Comparison
from lintra.models.base import AbstractModel
from lintra.runtime import memory
from lintra.runtime.cache import keep_compiled_programs
from lintra.runtime.processes import finished
from lintra.runtime.progress import Track
from lintra.sweep.grid import Cell, Chain
from lintra.sweep.store import Store

Entry = tuple[AbstractModel, zoo.Card]


def publish(
    chains: list[Chain],
    store: Store,
    path: Path,
    executor: Executor,
    *,
    num_sequences: int = 1_000_000,
    seed: int = 0,
    track: Track | None = None,
) -> list[str]:
    """Measure all cells that are in the store, write the zoo, and return the names of the cells that are not.

    All models of one problem are measured on the same sequences, in one of an executor's processes.
    The best seed of a cell is the one that was best when its training ended, not the one that is best here.
    """
    arguments.whole_number("num_sequences", num_sequences)
    arguments.whole_number("seed", seed, minimum=0)
    cells = list(dict.fromkeys(cell for chain in chains for cell in chain))
    missing = set(store.missing(cells))
    there = [cell for cell in cells if cell not in missing]
    problems: dict[tuple[str, int, int], list[Cell]] = {}
    for cell in there:
        problems.setdefault((cell.task.noise, cell.task.dim, cell.task.context), []).append(cell)
    largest_first = sorted(problems.items(), key=lambda place: -len(place[1]))
    memory.require_losses(num_sequences, max(map(len, problems.values()), default=0))
    futures = {
        executor.submit(_entries, own, store.folder, num_sequences, seed, f"publish {place}"): place
        for place, own in largest_first
    }
    entries = {futures[future]: future.result() for future in finished(futures, track)}
    zoo.write(path, {name: entry for place in sorted(entries) for name, entry in entries[place].items()})
    return [cell.name for cell in cells if cell in missing]


def _entries(cells: list[Cell], folder: Path, num_sequences: int, seed: int, word: str) -> dict[str, Entry]:
    """The entries of one problem."""
    keep_compiled_programs()
    store, key = Store(folder), jax.random.fold_in(jax.random.key(seed), zlib.crc32(word.encode()))
    models = {cell.name: store.load(cell) for cell in cells}
    measured = evaluate(models, cells[0].task.problem, num_sequences=num_sequences, key=key)
    seconds, entries = store.seconds(), {}
    by_task: dict[str, list[Cell]] = {}
    for cell in cells:
        by_task.setdefault(cell.task.name, []).append(cell)
    for name, seeds in by_task.items():
        cards = {cell: _card(cell, store, measured, seconds.get(cell.key)) for cell in seeds}
        best = min(seeds, key=lambda cell: cards[cell]["selection_loss"])
        entries[name] = models[best.name], cards[best] | {"seeds": len(seeds)}
        if len(seeds) > 1:
            entries |= {f"{name}-seed{cell.seed}": (models[cell.name], cards[cell]) for cell in seeds}
    return entries


def _card(cell: Cell, store: Store, measured: Comparison, seconds: float | None) -> zoo.Card:
    kept, loss, tail = store.card(cell), measured.adjusted(cell.name), measured.tail(cell.name)
    settings: dict[str, Any] = kept["settings"]
    return {
        "noise": cell.task.noise,
        "recipe": settings["recipe"],
        "settings": settings,
        "seed": cell.seed,
        "seeds": 1,
        "seconds": seconds,
        "selection_loss": kept["selection"]["held_out"],
        **loss.as_adjusted_loss(),
        "sequences": len(measured.losses[cell.name]),
        "median": tail.median,
        "worst": tail.worst,
        "worse_than_zero": tail.worse_than_zero,
    }
