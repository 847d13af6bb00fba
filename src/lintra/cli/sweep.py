"""The command `sweep`: train a grid of models."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import STORE, Json
from lintra.models.spec import ModelSpec
from lintra.problem.noise import parse_noise
from lintra.runtime.cluster import connect
from lintra.runtime.processes import ProcessExecutor, num_cores
from lintra.sweep.grid import GRIDS
from lintra.sweep.grid import shard as select_shard
from lintra.sweep.scheduler import run_sweep
from lintra.sweep.store import Store
from lintra.training.memory import require_memory
from lintra.training.recipes import RECIPES
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast


@app.command()
def sweep(
    grid: Annotated[str, typer.Argument(help=f"What to train: {', '.join(GRIDS)}.")],
    store: Annotated[Path, typer.Option(help="Folder for the models, the same for all grids.")] = STORE,
    noise: Annotated[list[str] | None, typer.Option(help="Only these noise priors; may be repeated.")] = None,
    layers: Annotated[int | None, typer.Option(help="Largest number of layers.")] = None,
    recipe: Annotated[
        str | None, typer.Option(help=f"How to train: {' or '.join(RECIPES)}; default: the grid's.")
    ] = None,
    num_steps: Annotated[
        int | None, typer.Option("--steps", help="Number of steps; default: the recipe's. Needs --recipe.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine, of one thread each.")] = num_cores(),
    shard: Annotated[str | None, typer.Option(help="One part of the grid only, e.g. 2/8.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:port.")] = None,
    scheduler_file: Annotated[Path | None, typer.Option(help="A Dask scheduler's file instead.")] = None,
    json: Json = False,
) -> None:
    """Train a grid of models. Stored models are not trained again, so an interrupted sweep is resumed."""
    arguments.one_of("grid", grid, tuple(GRIDS))
    arguments.whole_number("workers", workers)
    how = _parse_recipe(recipe, num_steps)
    if layers is not None:
        _check_depth(layers, how or Fast())
    noises = noise and [str(parse_noise(text)) for text in noise]
    part = {"noises": noises, "num_layers": layers, "recipe": how}
    chains = GRIDS[grid](**{name: value for name, value in part.items() if value is not None})
    if shard is not None:
        chains = select_shard(chains, *_parse_shard(shard))
    if scheduler and scheduler_file:
        raise ValueError("`scheduler` and `scheduler_file` both name a scheduler: give one of them.")
    on_cluster = bool(scheduler or scheduler_file)
    executor = connect(scheduler, scheduler_file) if on_cluster else ProcessExecutor(workers)
    folder = store.absolute()
    terminal.print_message(f"{sum(map(len, chains))} cells in {len(chains)} chains; the store is {folder}")
    with executor, terminal.Sweeping(grid) as progress:
        failures = run_sweep(chains, Store(folder, progress), executor, progress=progress)
    missing = {failure.cell.name: failure.reason for failure in failures}
    if json:
        seconds = Store(folder).seconds()
        rows = [
            {"cell": cell.name, "seconds": seconds.get(cell.digest), "note": missing.get(cell.name)}
            for chain in chains
            for cell in chain
        ]
        terminal.print_rows(rows)
    for name, reason in missing.items():
        terminal.print_error(f"{name} is missing: {reason}")
    if missing:
        raise typer.Exit(1)


def _parse_shard(text: str) -> tuple[int, int]:
    number, _, num_shards = text.partition("/")
    if not (number.isdecimal() and num_shards.isdecimal()):
        raise ValueError(f"`shard` must be like 2/8, got {text!r}.")
    return int(number), int(num_shards)


def _parse_recipe(name: str | None, num_steps: int | None) -> AbstractRecipe | None:
    """The recipe of this name and number of steps, or `None` for that of the grid."""
    if name is None:
        if num_steps is not None:
            raise ValueError(f"`num_steps` needs a recipe: give `recipe` as well, got {num_steps} steps alone.")
        return None
    arguments.one_of("recipe", name, tuple(RECIPES))
    return RECIPES[name](**({} if num_steps is None else {"num_steps": num_steps}))


def _check_depth(num_layers: int, recipe: AbstractRecipe) -> None:
    """Reject a grid whose deepest models cannot be trained, before its cells are listed."""
    spec = ModelSpec("full", arguments.whole_number("layers", num_layers), "fixed(1)")
    require_memory(spec, recipe, num_sequences=1)
