"""Commands for published models: publish a store, list a zoo."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import STORE, ColumnSequences, Json, Seed, ZooFile, check_file, check_settings
from lintra.runtime.processes import ProcessExecutor, num_cores
from lintra.sweep import publication
from lintra.sweep.grid import GRIDS
from lintra.sweep.store import Store


@app.command()
def publish(
    out: Annotated[Path, typer.Argument(help="The zoo to write, by custom *.safetensors.")],
    grid: Annotated[
        list[str] | None, typer.Option(help="What was trained; may be repeated; default: table1 and figure8.")
    ] = None,
    store: Annotated[Path, typer.Option(help="The sweep's store.")] = STORE,
    sequences: ColumnSequences = 1_000_000,
    seed: Seed = 0,
) -> None:
    """Make a zoo from the models of a sweep: measure them on fresh sequences and write weights and cards."""
    grids = grid or ["table1", "figure8"]
    for name in grids:
        arguments.one_of("grid", name, tuple(GRIDS))
    check_settings(sequences, seed)
    if not store.is_dir():
        raise FileNotFoundError(f"`store` '{store}' is not there. Train it first: lintra sweep {grids[0]}")
    check_file(out)
    chains = [chain for name in grids for chain in GRIDS[name]()]
    with ProcessExecutor(num_cores()) as executor, terminal.ProgressBar("publish") as progress:
        settings = {"num_sequences": sequences, "key": seed, "progress": progress}
        missing = publication.publish(chains, Store(store, progress), out, executor, **settings)
    for name in missing:
        terminal.print_message(f"{name} is not in the store.")
    terminal.print_message(f"{len(zoo.Zoo(out).cards)} models in '{out}'.")


@app.command("zoo")
def zoo_command(zoo_file: ZooFile = None, json: Json = False) -> None:
    """The published models, with how they were made and how good they are."""
    cards = zoo.read(zoo_file).cards
    names = ("noise", "layers", "seeds", "seconds", "adjusted_loss", "standard_error", "worst")
    rows = [{"name": name} | (card if json else {key: card[key] for key in names}) for name, card in cards.items()]
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(
            rows, f"{len(rows)} models", {name: name.replace("_", " ") for name in ("name", *names)}
        )
