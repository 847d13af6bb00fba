"""The command that trains a grid of models."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import STORE, Json
from lintra.models.spec import Task
from lintra.problem.noise import parse_noise
from lintra.runtime.cluster import cluster
from lintra.runtime.processes import Processes, num_cores
from lintra.sweep import runner
from lintra.sweep.grid import GRIDS
from lintra.sweep.grid import shard as select_shard
from lintra.sweep.store import Store
from lintra.training.loop import RECIPES
from lintra.training.sizes import require_memory


@app.command()
def sweep(
    grid: Annotated[str, typer.Argument(help=f"What to train: {', '.join(GRIDS)}.")],
    store: Annotated[Path, typer.Option(help="Folder for the models, the same for all grids.")] = STORE,
    noise: Annotated[list[str] | None, typer.Option(help="Only these noise priors; may be repeated.")] = None,
    layers: Annotated[int | None, typer.Option(help="Only up to so many layers.")] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine, of one thread each.")] = num_cores(),
    shard: Annotated[str | None, typer.Option(help="Only one part of the grid, e.g. 2/8.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:port.")] = None,
    scheduler_file: Annotated[Path | None, typer.Option(help="A Dask scheduler's file instead.")] = None,
    json: Json = False,
) -> None:
    """Train a grid of models. What is in the store is not trained again; an interrupted sweep goes on."""
    arguments.one_of("grid", grid, tuple(GRIDS))
    arguments.whole_number("workers", workers)
    if layers is not None:
        _check_depth(layers)
    chosen = {"noises": noise and [str(parse_noise(text)) for text in noise], "layers": layers}
    chains = GRIDS[grid](**{name: value for name, value in chosen.items() if value is not None})
    if shard is not None:
        chains = select_shard(chains, *_parse_shard(shard))
    if scheduler and scheduler_file:
        raise ValueError("`scheduler` and `scheduler_file` say the same thing: give one.")
    away = bool(scheduler or scheduler_file)
    executor = cluster(scheduler, scheduler_file) if away else Processes(workers)
    folder = store.absolute()
    terminal.say(f"{sum(map(len, chains))} cells in {len(chains)} chains; the store is {folder}")
    with executor, terminal.Sweeping(grid) as shown:
        failures = runner.run(chains, folder, executor, watch=shown.watch, say=terminal.say)
    missing = {failure.cell.name: failure.sentence for failure in failures}
    if json:
        seconds = Store(folder).seconds()
        rows = [
            {"cell": cell.name, "seconds": seconds.get(cell.key), "note": missing.get(cell.name)}
            for chain in chains
            for cell in chain
        ]
        terminal.print_rows(rows)
    for name, sentence in missing.items():
        terminal.complain(f"{name} is missing: {sentence}")
    if missing:
        raise typer.Exit(1)


def _parse_shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal()):
        raise ValueError(f"`shard` must be like 2/8, got {text!r}.")
    return int(number), int(count)


def _check_depth(layers: int) -> None:
    """Reject a grid whose deepest models cannot be trained, before its cells are listed."""
    task = Task("full", arguments.whole_number("layers", layers), "fixed(1)")
    require_memory(task, RECIPES["fast"](), num_sequences=1)
