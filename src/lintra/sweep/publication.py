"""Publication of a store of trained cells as a zoo: the best seed of each model, and all seeds beside it."""

import zlib
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lintra import arguments, zoo
from lintra.arguments import KeyLike, random_key
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.comparison import Comparison
from lintra.models.base import AbstractModel
from lintra.models.thresholds import measure_damping
from lintra.runtime import memory
from lintra.runtime.processes import as_completed
from lintra.runtime.progress import SILENT, Progress
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
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> list[str]:
    """Measure all stored cells and write them into a zoo.

    All models of one problem are measured on the same sequences, in one of the executor's processes. The best seed
    is the one with the smallest validation loss, not the one with the smallest loss here.

    Args:
        chains: The cells.
        store: The store.
        path: The file of the zoo.
        executor: Where models are measured, such as a `ProcessExecutor`.
        num_sequences: Number of fresh sequences for each problem. Default: 1,000,000.
        key: Randomness of the sequences, a number or a key. Default: 0.
        progress: Told about each problem that was measured. Default: not shown.

    Returns:
        Names of the cells that are not in the store.
    """
    arguments.whole_number("num_sequences", num_sequences)
    key_data = np.asarray(jax.random.key_data(random_key(key)))  # which can be sent to another process
    cells = list(dict.fromkeys(cell for chain in chains for cell in chain))
    missing = set(store.missing(cells))
    problems: dict[tuple[str, int, int], list[Cell]] = {}
    for cell in (cell for cell in cells if cell not in missing):
        problem = cell.spec.problem
        problems.setdefault((str(problem.noise), problem.dim, problem.num_examples), []).append(cell)
    largest_first = sorted(problems.items(), key=lambda item: -len(item[1]))
    memory.require_losses(num_sequences, max(map(len, problems.values()), default=0))
    futures = {
        executor.submit(_entries, group, store.folder, num_sequences, key_data, f"publish {problem}"): problem
        for problem, group in largest_first
    }
    entries = {futures[future]: future.result() for future in as_completed(futures, progress, "measuring")}
    zoo.write(path, {name: entry for problem in sorted(entries) for name, entry in entries[problem].items()})
    return [cell.name for cell in cells if cell in missing]


def _entries(
    cells: list[Cell], folder: Path, num_sequences: int, key_data: np.ndarray, words: str
) -> dict[str, Entry]:
    """The zoo's entries of one problem. `words` choose the random stream."""
    key = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(key_data)), zlib.crc32(words.encode()))
    store = Store(folder)
    models = {cell.name: store.load(cell) for cell in cells}
    comparison = evaluate(models, cells[0].spec.problem, num_sequences=num_sequences, key=key)
    thresholds_key = jax.random.fold_in(key, 1)  # other sequences than those of the losses
    models = {
        name: model.store_damping(measure_damping(model, cells[0].spec.problem, key=thresholds_key))
        for name, model in models.items()
    }
    seconds, entries = store.seconds(), {}
    by_name: dict[str, list[Cell]] = {}
    for cell in cells:
        by_name.setdefault(cell.spec.name, []).append(cell)
    for name, seeds in by_name.items():
        cards = {cell: _card(cell, store, comparison, seconds.get(cell.digest)) for cell in seeds}
        best = min(seeds, key=lambda cell: cards[cell]["selection_loss"])
        entries[name] = models[best.name], cards[best] | {"seeds": len(seeds)}
        if len(seeds) > 1:
            entries |= {f"{name}-seed{cell.seed}": (models[cell.name], cards[cell]) for cell in seeds}
    return entries


def _card(cell: Cell, store: Store, comparison: Comparison, seconds: float | None) -> zoo.Card:
    card, loss, tail = store.card(cell), comparison.adjusted(cell.name), comparison.tail(cell.name)
    settings: dict[str, Any] = card["settings"]
    return {
        "noise": str(cell.spec.problem.noise),
        "recipe": settings["recipe"],
        "settings": settings,
        "seed": cell.seed,
        "seeds": 1,
        "seconds": seconds,
        "selection_loss": card["selection"]["validation_loss"],
        **loss.as_adjusted_loss(),
        "sequences": comparison.num_sequences,
        "median": tail.median,
        "worst": tail.worst,
        "worse_than_zero": tail.worse_than_zero,
    }
