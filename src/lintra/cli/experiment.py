"""The command `experiment`: run the training that claims and figures judge, and store its rows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lintra import arguments
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import check_file
from lintra.experiments import EXPERIMENTS, run_experiment
from lintra.experiments.paper_recipe import PaperRecipe
from lintra.runtime.cache import enable_compilation_cache


@app.command()
def experiment(
    name: Annotated[str, typer.Argument(help=f"Which: {', '.join(EXPERIMENTS)}.")],
    out: Annotated[
        Path | None, typer.Option(help="File for the rows; default: experiments/ and the name, .json.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder of a finished run, which paper-recipe stores; for it alone.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
) -> None:
    """Run an experiment and store its rows with its settings and seed. An interrupted one is resumed."""
    arguments.one_of("name", name, tuple(EXPERIMENTS))
    if (run is not None) != (name == PaperRecipe.name):
        raise ValueError(f"`run` is the folder for {PaperRecipe.name}, and for it alone, got {run} for {name}.")
    settings: dict[str, Any] = {"seed": seed} if run is None else {"folder": str(run)}
    path = out or Path("experiments") / f"{name}.json"
    check_file(path)
    enable_compilation_cache()
    with terminal.Training(name) as progress:
        stored = run_experiment(EXPERIMENTS[name](**settings), path, progress=progress)
    seconds = sum(part.seconds for part in stored.parts.values())
    terminal.print_message(f"{len(stored.rows)} rows of {len(stored.parts)} parts, {seconds:.0f} s, in '{path}'.")
