"""Commands for regressions on your own data: solve many at once, and train the specialists for it."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.cli import terminal
from lintra.cli.app import app, in_options
from lintra.cli.options import check_file
from lintra.regression import chunked, files, specialist_training, specialists
from lintra.regression.soundness import UnsoundWarning
from lintra.runtime.cache import enable_compilation_cache
from lintra.runtime.processes import ProcessExecutor, as_completed, num_cores


@app.command()
def solve(
    path: Annotated[
        Path, typer.Argument(help="Contexts: .npz with x and y, or .csv or .parquet, one example a row.")
    ],
    out: Annotated[Path, typer.Option(help="File for the weights: .npz, .csv or .parquet.")],
    model: Annotated[
        str, typer.Option(help="A published model, a file, or auto for the nearest specialist.")
    ] = "auto",
    task: Annotated[str, typer.Option(help="Column of a table that tells contexts apart.")] = "task",
    label: Annotated[str, typer.Option(help="Column of a table that holds labels; all others are inputs.")] = "y",
    standardise: Annotated[
        bool, typer.Option(help="Divide the inputs of every context by their standard deviations.")
    ] = True,
    fit_intercept: Annotated[
        bool, typer.Option(help="Centre inputs and labels, and add a column of intercepts to the weights.")
    ] = True,
) -> None:
    """The weights of very many small regressions, each from its own examples."""
    files.check_out(out, path)
    check_file(out)
    contexts = files.read(path, task=task, label=label)
    if fit_intercept:
        files.check_intercept(contexts)
    enable_compilation_cache()
    with warnings.catch_warnings(record=True) as caught, terminal.ProgressBar("solving") as progress:
        warnings.simplefilter("always", UnsoundWarning)
        weights = chunked.solve(
            contexts.x,
            contexts.y,
            model=model,
            standardise=standardise,
            fit_intercept=fit_intercept,
            progress=progress,
        )
    files.write(out, contexts, weights)
    for warning in caught:
        terminal.print_error(in_options(str(warning.message), ["solve"]))
    terminal.print_message(f"{len(weights):,} regressions with {len(contexts.inputs)} inputs: weights in '{out}'.")


@app.command("specialists")
def specialists_command(
    out: Annotated[Path, typer.Argument(help="The file to write, by custom *.safetensors.")],
    workers: Annotated[int, typer.Option(help="Processes on this machine, of one thread each.")] = num_cores(),
) -> None:
    """Train the specialists that `solve` and the regressor choose from: a quarter of an hour on two cores."""
    arguments.whole_number("workers", workers)
    check_file(out)
    with ProcessExecutor(workers) as executor, terminal.ProgressBar("specialists") as progress:
        futures = [executor.submit(specialist_training.train_ratio, ratio) for ratio in specialists.RATIOS]
        done = as_completed(futures, progress, "training")
        results = {futures.index(future): future.result() for future in done}
    entries = {name: entry for position in sorted(results) for name, entry in results[position].items()}
    zoo.write(out, entries)
    terminal.print_message(f"{len(entries)} specialists in '{out}'.")
