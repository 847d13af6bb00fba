"""The command that opens the explorer page."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.baselines import BASELINES
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import Seed, check_file, keys
from lintra.explorer.curves import curves_file, read_curves, write_curves
from lintra.explorer.curves import measure as measure_curves
from lintra.explorer.page import page
from lintra.runtime import memory
from lintra.runtime.cache import cache_folder, enable_compilation_cache
from lintra.runtime.files import write_atomic


@app.command()
def explore(
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: one in the user's cache folder.")
    ] = None,
    zoo_file: Annotated[
        Path | None, typer.Option("--zoo", help="A zoo of your own; default: the published one.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Write the page and do not open it.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="First measure the zoo's losses at every noise level, and keep them.")
    ] = False,
    sequences: Annotated[int, typer.Option(help="Fresh sequences for a noise level, with --measure.")] = 8192,
    seed: Seed = 0,
) -> None:
    """Open the explorer: one page that runs the models of the zoo, with no server and no outside address."""
    path = out or cache_folder() / "explorer.html"
    keys(seed)
    memory.require_losses(arguments.whole_number("num_sequences", sequences), 25 * len(BASELINES))
    check_file(path)
    models = zoo.read(zoo_file)
    if measure:
        check_file(curves_file(models.path))
        enable_compilation_cache()
        with terminal.ProgressBar("curves") as progress:
            curves = measure_curves(models, num_sequences=sequences, key=seed, progress=progress)
        write_curves(models.path, curves)
        terminal.print_message(f"Measured: '{curves_file(models.path)}'.")
    write_atomic(path, page(models, read_curves(models.path)).encode())
    print(path)
    if not no_open and not _open(path):
        terminal.print_message("No browser was found: open that file in one.")


def _open(page: Path) -> bool:
    try:
        return webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error:
        return False
