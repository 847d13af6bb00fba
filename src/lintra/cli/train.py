"""The command `train`: train one model."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import Dim, Examples, Json, keys, show
from lintra.models.families import FAMILIES
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.cache import enable_compilation_cache
from lintra.training.loop import train as train_model
from lintra.training.recipes import RECIPES
from lintra.training.stage import TrainingFailedError


@app.command()
def train(
    family: Annotated[str, typer.Option("--family", "--variant", help=f"{', '.join(FAMILIES)}.")],
    num_layers: Annotated[int, typer.Option("--layers", help="Number of layers.")],
    noise: Annotated[str, typer.Option(help="Noise prior, e.g. uniform(0,5).")],
    recipe: Annotated[str, typer.Option(help=f"How to train: {' or '.join(RECIPES)}.")] = "fast",
    num_heads: Annotated[int, typer.Option("--heads", help="Number of heads.")] = 1,
    dim: Dim = 10,
    num_examples: Examples = 20,
    num_starts: Annotated[
        int | None, typer.Option("--starts", "--seeds", help="Number of random starts, of which the best is kept.")
    ] = None,
    objective: Annotated[str | None, typer.Option(help="query, truth or bayes; default: the recipe's.")] = None,
    num_steps: Annotated[
        int | None, typer.Option("--steps", help="Number of steps; default: the recipe's.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate; default: the recipe's.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: runs/ and the model's name.")] = None,
    sequences: Annotated[int, typer.Option(help="Fresh sequences to measure the result on.")] = 1_000_000,
    json: Json = False,
) -> None:
    """Train a model. An interrupted run is resumed. Its folder has the settings, the metrics and the model."""
    spec = ModelSpec(family, num_layers, NoisyRegression(dim, num_examples, noise), num_heads)
    given = {
        "num_starts": num_starts,
        "objective": objective,
        "num_steps": num_steps,
        "learning_rate": learning_rate,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    arguments.one_of("recipe", recipe, tuple(RECIPES))
    how = RECIPES[recipe](**settings)
    for name in sorted(how.unused(spec) & set(settings)):
        raise ValueError(f"`{name}` has no meaning for {family} with the recipe {recipe}: leave it out.")
    keys(seed)
    folder = out or Path("runs") / (spec.name + (f"-{recipe}" if recipe != "fast" else "") + f"-seed{seed}")
    enable_compilation_cache()
    with terminal.Training(spec.name) as progress:
        settings = {"key": seed, "folder": folder, "num_sequences": sequences}
        result = train_model(spec, how, **settings, throw=False, progress=progress)
    row = {
        "method": family,
        "layers": num_layers,
        "noise": str(spec.problem.noise),
        **result.to_row(),
        "file": str(folder),
    }
    show([row], f"Adjusted loss, {sequences:,} fresh sequences", json)
    if result.remark and not json:
        terminal.print_message(result.remark)
    if not result.is_sound:
        raise TrainingFailedError(result.message)
