"""Commands for published models: publish a store, list a zoo."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, zoo
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import (
    STORE,
    ColumnSequences,
    Json,
    Seed,
    ZooFile,
    check_file,
    check_folder,
    check_settings,
)
from lintra.display import Row
from lintra.evaluation.safety import NUM_SEQUENCES as GATE_SEQUENCES
from lintra.runtime.processes import ProcessExecutor, num_cores
from lintra.sweep import publication
from lintra.sweep.grid import GRIDS
from lintra.sweep.store import Store
from lintra.zoo.card import to_json

GateSequences = Annotated[int, typer.Option(help="Sequences of the gate, on which no safe model explodes.")]
_FOOTNOTE = (
    "Losses of models as printed and damped on the same fresh sequences. Exploded: on how many sequences of the "
    "gate the loss is above 5d or not finite."
)


@app.command()
def publish(
    out: Annotated[Path, typer.Argument(help="The zoo to write, by custom *.safetensors.")],
    grid: Annotated[
        list[str] | None, typer.Option(help="What was trained; may be repeated; default: table1 and figure8.")
    ] = None,
    store: Annotated[Path, typer.Option(help="The sweep's store.")] = STORE,
    sequences: ColumnSequences = 1_000_000,
    gate_sequences: GateSequences = GATE_SEQUENCES,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Publish models that explode, too; their cards say so.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Make a zoo from the models of a sweep: measure them on fresh sequences and write weights and cards.

    A model that explodes on a sequence of the gate is rejected. An interrupted gate is resumed.
    """
    grids = grid or ["table1", "figure8"]
    for name in grids:
        arguments.one_of("grid", name, tuple(GRIDS))
    check_settings(sequences, seed)
    if not store.is_dir():
        raise FileNotFoundError(f"`store` '{store}' is not there. Train it first: lintra sweep {grids[0]}")
    check_file(out)
    chains = [chain for name in grids for chain in GRIDS[name]()]
    with ProcessExecutor(num_cores()) as executor, terminal.ProgressBar("publish") as progress:
        settings = {
            "num_sequences": sequences,
            "num_gate_sequences": gate_sequences,
            "allow_unsafe": unsafe,
            "key": seed,
            "progress": progress,
        }
        published = publication.publish(chains, Store(store, progress), out, executor, **settings)
    for name in published.missing:
        terminal.print_message(f"{name} is not in the store.")
    terminal.print_message(f"{len(zoo.Zoo(out).cards)} models in '{out}'.")
    _report_unsafe(published.unsafe, gate_sequences)
    if published.unsafe and not unsafe:
        terminal.print_error("They are not published. To publish them as they are: --unsafe")
        raise typer.Exit(1)


@app.command()
def gate(
    out: Annotated[Path, typer.Argument(help="The zoo to write, by custom *.safetensors.")],
    zoo_file: ZooFile = None,
    sequences: ColumnSequences = 1_000_000,
    gate_sequences: GateSequences = GATE_SEQUENCES,
    state: Annotated[
        Path, typer.Option(help="Folder for the counts so far, from which an interrupted gate is resumed.")
    ] = Path("gate"),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure the models of a zoo again and write it with new cards: losses, tails, and the gate.

    The gate counts sequences on which a model explodes: as used, as printed, and in 32 bits.
    """
    check_settings(sequences, seed)
    models = zoo.read(zoo_file)
    check_file(out)
    check_folder(state)
    with ProcessExecutor(num_cores()) as executor, terminal.ProgressBar("gate") as progress:
        settings = {
            "num_sequences": sequences,
            "num_gate_sequences": gate_sequences,
            "key": seed,
            "progress": progress,
        }
        measured = publication.measure_zoo(models, out, executor, state_folder=state, **settings)
    terminal.print_message(f"{len(models.cards)} models in '{out}'.")
    _report_unsafe(measured.unsafe, gate_sequences)


def _report_unsafe(names: list[str], num_sequences: int) -> None:
    for name in names:
        terminal.print_message(f"{name} is not safe: it explodes on at least one of {num_sequences:,} sequences.")


@app.command("zoo")
def zoo_command(zoo_file: ZooFile = None, json: Json = False) -> None:
    """The published models, with how they were made and how good they are."""
    cards = zoo.read(zoo_file).cards
    if json:
        terminal.print_rows([{"name": name} | to_json(card) for name, card in cards.items()])
        return
    rows = [_row(name, card) for name, card in cards.items()]
    terminal.print_table(rows, f"{len(rows)} models", {column: column for column in rows[0]})
    terminal.print_message(_FOOTNOTE)


def _row(name: str, card: zoo.Card) -> Row:
    """Return a line of the list. Numbers that were not measured are `None`."""
    damped = card.get("damped") or {}
    return {
        "name": name,
        "seconds": card.get("seconds"),
        "adjusted loss": card.get("adjusted_loss"),
        "standard error": card.get("standard_error"),
        "median": card.get("median"),
        "worst": card.get("worst"),
        "exploded": card.get("printed_num_exploded"),
        "damped loss": damped.get("adjusted_loss"),
        "damped worst": damped.get("worst"),
        "damped exploded": card.get("num_exploded"),
    }
