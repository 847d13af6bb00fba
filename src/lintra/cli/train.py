"""Commands that train: one model, or a grid of them."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import checks, cores, terminal
from lintra import sweep as sweeps
from lintra.cli.base import STORE, Context, Dim, Json, app, keys, show
from lintra.compiled import keep_compiled_programs
from lintra.noise import parse_noise
from lintra.sweep import GRIDS
from lintra.training import RECIPES, Task, TrainingFailedError
from lintra.training import train as train_model
from lintra.training.sizes import require_memory


@app.command()
def train(
    variant: Annotated[str, typer.Option(help="full, diag or gd++.")],
    layers: Annotated[int, typer.Option(help="Number of layers.")],
    noise: Annotated[str, typer.Option(help="Noise prior, e.g. uniform(0,5).")],
    recipe: Annotated[str, typer.Option(help=f"How to train: {' or '.join(RECIPES)}.")] = "fast",
    heads: Annotated[int, typer.Option(help="Number of heads.")] = 1,
    dim: Dim = 10,
    context: Context = 20,
    seeds: Annotated[int | None, typer.Option(help="Starts side by side, of which the best is kept.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="query, truth or bayes; default: the recipe's own.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of Adam; default: the recipe's own.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Rate of Adam; default: the recipe's own.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: runs/ and the model's name.")] = None,
    sequences: Annotated[int, typer.Option(help="Fresh sequences to measure the result on.")] = 1_000_000,
    json: Json = False,
) -> None:
    """Train a model; a run that was interrupted goes on. Its folder holds settings, metrics and the model."""
    task = Task(variant, layers, noise, heads=heads, dim=dim, context=context)
    given = {"seeds": seeds, "objective": objective, "steps": steps, "learning_rate": learning_rate}
    settings = {name: value for name, value in given.items() if value is not None}
    checks.one_of("recipe", recipe, tuple(RECIPES))
    chosen = RECIPES[recipe](**settings)
    for name in sorted(chosen.unused(task) & set(settings)):
        raise ValueError(f"`{name}` has no meaning for {variant} with the recipe {recipe}: leave it out.")
    keys(seed)
    folder = out or Path("runs") / (task.name + (f"-{recipe}" if recipe != "fast" else "") + f"-seed{seed}")
    keep_compiled_programs()
    with terminal.Training(task.name) as shown:
        trained = train_model(
            task,
            chosen,
            seed=seed,
            folder=folder,
            num_sequences=sequences,
            report=shown.report,
            say=terminal.say,
            track=shown.track,
        )
    row = {"method": variant, "layers": layers, "noise": task.noise, **trained.figures(), "file": str(folder)}
    show([row], f"Adjusted loss, {sequences:,} fresh sequences", json)
    if trained.complaint:
        raise TrainingFailedError(trained.complaint)


@app.command()
def sweep(
    grid: Annotated[str, typer.Argument(help=f"What to train: {', '.join(GRIDS)}.")],
    store: Annotated[Path, typer.Option(help="Folder for the models, the same for all grids.")] = STORE,
    noise: Annotated[list[str] | None, typer.Option(help="Only these noise priors; may be repeated.")] = None,
    layers: Annotated[int | None, typer.Option(help="Only up to so many layers.")] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine, of one thread each.")] = cores.count(),
    shard: Annotated[str | None, typer.Option(help="Only one part of the grid, e.g. 2/8.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:port.")] = None,
    scheduler_file: Annotated[Path | None, typer.Option(help="A Dask scheduler's file instead.")] = None,
    json: Json = False,
) -> None:
    """Train a grid of models. What is in the store is not trained again; an interrupted sweep goes on."""
    checks.one_of("grid", grid, tuple(GRIDS))
    checks.whole_number("workers", workers)
    if layers is not None:
        _check_depth(layers)
    chosen = {"noises": noise and [str(parse_noise(text)) for text in noise], "layers": layers}
    chains = GRIDS[grid](**{name: value for name, value in chosen.items() if value is not None})
    if shard is not None:
        chains = sweeps.shard(chains, *_parse_shard(shard))
    if scheduler and scheduler_file:
        raise ValueError("`scheduler` and `scheduler_file` say the same thing: give one.")
    away = bool(scheduler or scheduler_file)
    executor = sweeps.cluster(scheduler, scheduler_file) if away else sweeps.Processes(workers)
    folder = store.absolute()
    terminal.say(f"{sum(map(len, chains))} cells in {len(chains)} chains; the store is {folder}")
    with executor, terminal.Sweeping(grid) as shown:
        failures = sweeps.run(chains, folder, executor, watch=shown.watch, say=terminal.say)
    missing = {failure.cell.name: failure.sentence for failure in failures}
    if json:
        seconds = sweeps.Store(folder).seconds()
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


def _check_depth(layers: int) -> None:
    """Reject a grid whose deepest models cannot be trained, before its cells are listed."""
    task = Task("full", checks.whole_number("layers", layers), "fixed(1)")
    require_memory(task, RECIPES["fast"](), num_sequences=1)


def _parse_shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal()):
        raise ValueError(f"`shard` must be like 2/8, got {text!r}.")
    return int(number), int(count)
