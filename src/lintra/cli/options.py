"""Options that several commands share, and what they are turned into."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from lintra import arguments, zoo
from lintra.cli import loss_rows, terminal
from lintra.display import Plot
from lintra.evaluation.column import BASELINES
from lintra.models.base import AbstractModel
from lintra.models.families import VARIANTS
from lintra.problem.noise import parse_noise
from lintra.runtime import memory

Noise = Annotated[list[str], typer.Option("--noise", help="Noise prior, e.g. uniform(0,5); may be repeated.")]
Dim = Annotated[int, typer.Option(help="Number of inputs, d.")]
Context = Annotated[int, typer.Option(help="Number of examples, n.")]
Sequences = Annotated[int, typer.Option(help="Number of fresh sequences.")]
Seed = Annotated[int, typer.Option(help="Seed of the sequences.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON.")]
Tail = Annotated[bool, typer.Option("--tail", help="Also print what the tail of the losses looks like.")]
ZooFile = Annotated[Path | None, typer.Option("--zoo", help="A zoo of your own; default: the published one.")]
ColumnSequences = Annotated[int, typer.Option("--sequences", help="Fresh sequences for a column of Table 1.")]

OwnNoise = Annotated[str | None, typer.Option("--noise", help="Noise prior; default: the model's own.")]
MODEL = "A published model, such as full-7-uniform(0,5), or a model file."
"""How commands that take a model describe it."""

STORE = Path("sweeps")
"""Where sweeps keep models, if nothing else is said: one folder for all grids, which have cells in common."""


def check_folder(folder: Path) -> None:
    """Make a folder if it is not there, and see that files can be written to it, before any work."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


def check_file(path: Path) -> None:
    """See that a file can be written, before any work."""
    if path.is_dir():
        raise ValueError(f"`out` '{path}' is a folder: give the name of a file.")
    check_folder(path.parent)


def draw(plots: Sequence[Plot], folder: Path, name: str) -> list[Path]:
    """Draw plots into a folder, with their numbers, and tell where."""
    from lintra.figures import curves  # imports matplotlib, for which commands that draw nothing need not wait
    from lintra.figures.style import save, styled

    with styled():
        return save(curves.draw(plots), curves.rows(plots), folder, name)


def keys(seed: int) -> jax.Array:
    """Keys for tuning, for measuring and for the paper's protocol."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"`seed` must be a whole number from 0 to 2^63 - 1, got {seed}.")
    return jax.random.split(jax.random.key(seed), 3)


def find_model(name: str, noise: str | None) -> tuple[AbstractModel, str]:
    """A model by its name or file, and the noise prior to use: the given one, its own, or that of most figures."""
    if noise is not None:
        parse_noise(noise)
    model, own_noise = zoo.find(name)
    return model, (own_noise or "uniform(0,5)") if noise is None else noise


def show(rows: list[dict[str, Any]], title: str, json: bool) -> None:
    """Print rows of losses as a table, or as JSON."""
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(rows, title, loss_rows.COLUMNS)


def check_settings(sequences: int, seed: int) -> None:
    """Reject settings before any work: in a column of Table 1 every method has two losses a sequence."""
    methods = 7 * len(VARIANTS) + len(BASELINES)
    memory.require_losses(arguments.whole_number("num_sequences", sequences), 2 * methods)
    keys(seed)
