"""Options that several commands share, and what they are turned into."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jax
import typer

from lintra import arguments, zoo
from lintra.baselines import TABLE1_BASELINES
from lintra.cli import loss_rows, terminal
from lintra.display import Plot, Row
from lintra.models.base import AbstractModel
from lintra.models.families import PAPER_FAMILIES
from lintra.problem.noise import parse_noise
from lintra.runtime import memory

Noise = Annotated[list[str], typer.Option("--noise", help="Noise prior, e.g. uniform(0,5); may be repeated.")]
Dim = Annotated[int, typer.Option(help="Number of inputs, d.")]
Examples = Annotated[int, typer.Option("--examples", "--context", help="Number of examples in a context, n.")]
Sequences = Annotated[int, typer.Option(help="Number of fresh sequences.")]
Seed = Annotated[int, typer.Option(help="Seed of the sequences.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON.")]
Tail = Annotated[
    bool, typer.Option("--tail", help="Also print the tail of the losses: median, trimmed mean, worst.")
]
ZooFile = Annotated[Path | None, typer.Option("--zoo", help="A zoo of your own; default: the published one.")]
ColumnSequences = Annotated[int, typer.Option("--sequences", help="Fresh sequences for a column of Table 1.")]

OwnNoise = Annotated[str | None, typer.Option("--noise", help="Noise prior; default: the model's own.")]
MODEL = "A published model, such as full-7-uniform(0,5), or a model file."
"""How commands that take a model describe it."""

STORE = Path("sweeps")
"""Default folder for the models of sweeps: one for all grids, which have cells in common."""


def check_folder(folder: Path) -> None:
    """Make a folder if it does not exist, and check that files can be written to it, before any work."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


def check_file(path: Path) -> None:
    """Check that a file can be written, before any work."""
    if path.is_dir():
        raise ValueError(f"`out` '{path}' is a folder: give the name of a file.")
    check_folder(path.parent)


def draw(plots: Sequence[Plot], folder: Path, name: str) -> list[Path]:
    """Draw plots into a folder, with their numbers, and return the paths of the files."""
    from lintra.figures import curves  # imports matplotlib, which is slow
    from lintra.figures.style import save, styled

    with styled():
        return save(curves.draw(plots), curves.rows(plots), folder, name)


def keys(seed: int) -> jax.Array:
    """Keys for tuning, for measuring and for the paper's protocol."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"`seed` must be a whole number from 0 to 2^63 - 1, got {seed}.")
    return jax.random.split(jax.random.key(seed), 3)


def find_model(name: str, noise: str | None) -> tuple[AbstractModel, str]:
    """Return a model by name or file, and the noise prior to use: the given one, its own, or uniform(0,5)."""
    if noise is not None:
        parse_noise(noise)
    model, own_noise = zoo.find(name)
    return model, (own_noise or "uniform(0,5)") if noise is None else noise


def show(rows: list[Row], title: str, json: bool) -> None:
    """Print rows of losses as a table, or as JSON."""
    if json:
        terminal.print_rows(rows)
    else:
        marked, footnote = loss_rows.mark_rows(rows)
        terminal.print_table(marked, title, loss_rows.COLUMNS, footnote)


def check_settings(num_sequences: int, seed: int) -> None:
    """Reject settings before any work: in a column of Table 1 every method has two losses a sequence."""
    methods = 7 * len(PAPER_FAMILIES) + len(TABLE1_BASELINES)
    memory.require_losses(arguments.whole_number("num_sequences", num_sequences), 2 * methods)
    keys(seed)
