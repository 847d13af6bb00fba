"""Publication of models as a zoo: measured on fresh sequences, judged by the gate, written with their cards.

Models come from a store of trained cells, the best seed of each name and all seeds beside it, or from a zoo whose
cards are to be measured again.
"""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lintra import arguments, zoo
from lintra.arguments import KeyLike, random_key
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.safety import NUM_SEQUENCES as GATE_SEQUENCES
from lintra.models.base import AbstractModel
from lintra.models.thresholds import measure_damping
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import memory
from lintra.runtime.processes import as_completed
from lintra.runtime.progress import SILENT, Progress
from lintra.sweep.card_fields import measure_fields
from lintra.sweep.grid import Cell, Chain
from lintra.sweep.store import Store
from lintra.zoo.collection import Zoo

Entry = tuple[AbstractModel, zoo.Card]
Entries = dict[str, Entry]
_Problem = tuple[str, int, int]  # noise prior, number of inputs, number of examples


@dataclass(frozen=True)
class Publication:
    """What was published.

    Attributes:
        missing: Names of cells that are not in the store.
        unsafe: Names of models that explode on sequences of the gate. They are in the zoo only if they were
            allowed.
    """

    missing: list[str]
    unsafe: list[str]


def publish(
    chains: list[Chain],
    store: Store,
    path: Path,
    executor: Executor,
    *,
    num_sequences: int = 1_000_000,
    num_gate_sequences: int = GATE_SEQUENCES,
    allow_unsafe: bool = False,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> Publication:
    """Measure all stored cells, judge them by the gate, and write them into a zoo.

    All models of one problem are measured on the same sequences, in one of the executor's processes. The best seed
    is the one with the smallest validation loss, not the one with the smallest loss here. Counts of the gate are
    stored in the folder `gate` of the store, from which an interrupted publication is resumed.

    Args:
        chains: The cells.
        store: The store.
        path: The file of the zoo.
        executor: Where models are measured, such as a `ProcessExecutor`.
        num_sequences: Number of fresh sequences for the losses of each problem. Default: 1,000,000.
        num_gate_sequences: Number of sequences of the gate. Default: 10,000,000.
        allow_unsafe: Whether models that explode are published too, with `safe` false on their cards. Default:
            they are left out.
        key: Randomness of the sequences for losses, a number or a key. Default: 0.
        progress: Told about each problem that was measured. Default: not shown.

    Returns:
        Names of the cells that are missing, and of the models that are not safe.
    """
    cells = list(dict.fromkeys(cell for chain in chains for cell in chain))
    missing = set(store.missing(cells))
    by_name = {cell.name: cell for cell in cells if cell not in missing}
    measured = _measure_models(
        {name: store.load(cell) for name, cell in by_name.items()},
        {name: _problem(cell.spec.problem) for name, cell in by_name.items()},
        executor,
        num_sequences=num_sequences,
        num_gate_sequences=num_gate_sequences,
        state_folder=store.folder / "gate",
        key=key,
        progress=progress,
    )
    seconds = store.seconds()
    entries: dict[Cell, Entry] = {
        cell: (model, _training_fields(cell, store, seconds.get(cell.digest)) | fields)
        for cell, (model, fields) in ((by_name[name], entry) for name, entry in measured.items())
    }
    published = _with_seeds(entries)
    unsafe = [name for name, (_, card) in published.items() if not card["safe"]]
    if not allow_unsafe:
        published = {name: entry for name, entry in published.items() if name not in unsafe}
    zoo.write(path, published)
    return Publication([cell.name for cell in cells if cell in missing], unsafe)


def measure_zoo(
    models: Zoo,
    path: Path,
    executor: Executor,
    *,
    state_folder: Path,
    num_sequences: int = 1_000_000,
    num_gate_sequences: int = GATE_SEQUENCES,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> Publication:
    """Measure the models of a zoo again and write it with new cards. Weights and thresholds stay.

    Args:
        models: The zoo.
        path: The file to write, which may be that of the zoo.
        executor: Where models are measured, such as a `ProcessExecutor`.
        state_folder: Folder for counts of the gate, from which an interrupted measurement is resumed.
        num_sequences: Number of fresh sequences for the losses of each problem. Default: 1,000,000.
        num_gate_sequences: Number of sequences of the gate. Default: 10,000,000.
        key: Randomness of the sequences for losses, a number or a key. Default: 0.
        progress: Told about each problem that was measured. Default: not shown.

    Returns:
        The models that are not safe. All are in the new zoo, with `safe` on their cards.
    """
    measured = _measure_models(
        {name: models.load(name) for name in models.cards},
        {name: (card["noise"], card["dim"], card["context"]) for name, card in models.cards.items()},
        executor,
        num_sequences=num_sequences,
        num_gate_sequences=num_gate_sequences,
        state_folder=state_folder,
        key=key,
        progress=progress,
    )
    entries = {name: (measured[name][0], card | measured[name][1]) for name, card in models.cards.items()}
    zoo.write(path, entries)
    return Publication([], [name for name, (_, fields) in measured.items() if not fields["safe"]])


def _problem(problem: NoisyRegression) -> _Problem:
    return str(problem.noise), problem.dim, problem.num_examples


def _measure_models(
    models: Mapping[str, AbstractModel],
    problems: Mapping[str, _Problem],
    executor: Executor,
    *,
    num_sequences: int,
    num_gate_sequences: int,
    state_folder: Path,
    key: KeyLike,
    progress: Progress,
) -> Entries:
    """Return models with thresholds, and the measured fields of their cards, by name. A problem is a process."""
    arguments.whole_number("num_sequences", num_sequences)
    arguments.whole_number("num_gate_sequences", num_gate_sequences)
    key_data = np.asarray(jax.random.key_data(random_key(key)))  # which can be sent to another process
    groups: dict[_Problem, dict[str, AbstractModel]] = {}
    for name, model in models.items():
        groups.setdefault(problems[name], {})[name] = model
    num_forms = 2  # as printed and damped
    memory.require_losses(num_sequences, num_forms * max(map(len, groups.values()), default=0))
    largest_first = sorted(groups.items(), key=lambda item: -len(item[1]))
    counts = num_sequences, num_gate_sequences
    futures = {
        executor.submit(_measure_problem, group, problem, *counts, key_data, state_folder): problem
        for problem, group in largest_first
    }
    entries = {futures[future]: future.result() for future in as_completed(futures, progress, "measuring")}
    return {name: entry for problem in sorted(entries) for name, entry in entries[problem].items()}


def _measure_problem(
    models: dict[str, AbstractModel],
    problem: _Problem,
    num_sequences: int,
    num_gate_sequences: int,
    key_data: np.ndarray,
    state_folder: Path,
) -> Entries:
    """Measure the models of one problem. The words choose the random stream."""
    noise, dim, num_examples = problem
    regression = NoisyRegression(dim, num_examples, noise)
    key = fold_in_words(jax.random.wrap_key_data(jnp.asarray(key_data)), f"publish {problem}")
    thresholds_key = jax.random.fold_in(key, 1)  # other sequences than those of the losses
    models = {
        name: model
        if model.stored_damping is not None
        else model.store_damping(measure_damping(model, regression, key=thresholds_key))
        for name, model in models.items()
    }
    fields = measure_fields(
        models,
        regression,
        num_sequences=num_sequences,
        num_gate_sequences=num_gate_sequences,
        key=key,
        state_folder=state_folder,
    )
    return {name: (model, fields[name]) for name, model in models.items()}


def _with_seeds(entries: Mapping[Cell, Entry]) -> Entries:
    """Return the best seed of each name by validation loss, and all seeds where there are several."""
    by_name: dict[str, list[Cell]] = {}
    for cell in entries:
        by_name.setdefault(cell.spec.name, []).append(cell)
    published: Entries = {}
    for name, seeds in by_name.items():
        best, card = entries[min(seeds, key=lambda cell: entries[cell][1]["selection_loss"])]
        published[name] = best, card | {"seeds": len(seeds)}
        if len(seeds) > 1:
            published |= {f"{name}-seed{cell.seed}": entries[cell] for cell in seeds}
    return published


def _training_fields(cell: Cell, store: Store, seconds: float | None) -> dict[str, Any]:
    """Return what a card says about the training of a cell."""
    card = store.card(cell)
    settings: dict[str, Any] = card["settings"]
    return {
        "noise": str(cell.spec.problem.noise),
        "recipe": settings["recipe"],
        "settings": settings,
        "seed": cell.seed,
        "seeds": 1,
        "seconds": seconds,
        "selection_loss": card["selection"]["validation_loss"],
    }
