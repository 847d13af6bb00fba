"""The command that trains one model."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import Context, Dim, Json, keys, show
from lintra.models.spec import Task
from lintra.runtime.cache import keep_compiled_programs
from lintra.training.loop import RECIPES
from lintra.training.loop import train as train_model
from lintra.training.stage import TrainingFailedError


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
    arguments.one_of("recipe", recipe, tuple(RECIPES))
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
