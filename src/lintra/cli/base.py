"""The application: options that commands share, and how every command ends."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from lintra import rows as rows_of
from lintra import terminal, zoo
from lintra.models import AbstractModel
from lintra.plots import Plot
from lintra.training import TrainingFailedError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Noise = Annotated[list[str], typer.Option("--noise", help="Noise prior, e.g. uniform(0,5); may be repeated.")]
Dim = Annotated[int, typer.Option(help="Number of inputs, d.")]
Context = Annotated[int, typer.Option(help="Number of examples, n.")]
Sequences = Annotated[int, typer.Option(help="Number of fresh sequences.")]
Seed = Annotated[int, typer.Option(help="Seed of the sequences.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON.")]
Tail = Annotated[bool, typer.Option("--tail", help="Also print what the tail of the losses looks like.")]

OwnNoise = Annotated[str | None, typer.Option("--noise", help="Noise prior; default: the model's own.")]
MODEL = "A published model, such as full-7-uniform(0,5), or a model file."
"""How commands that take a model describe it."""

STORE = Path("sweeps")
"""Where sweeps keep models, if nothing else is said: one folder for all grids, which have cells in common."""


@app.callback()
def _lintra() -> None:
    """Linear transformers as in-context learners."""


_INTERRUPTED = 130


def main() -> None:
    """Run the command line; bad input ends in one sentence."""
    try:
        app()
    except (ValueError, TrainingFailedError) as error:
        terminal.complain(str(error))
        sys.exit(2)
    except OSError as error:
        place = f"'{error.filename}' cannot be used: " if error.filename else ""
        terminal.complain(f"{place}{error.strerror or error}. Files that were there before are whole.")
        sys.exit(2)
    except SystemExit as stop:
        if stop.code != _INTERRUPTED:
            raise
        terminal.complain("interrupted.")
        os._exit(_INTERRUPTED)  # at once: work may be under way in XLA's threads


def draw(plots: Sequence[Plot], folder: Path, name: str) -> list[Path]:
    """Draw plots into a folder, with their numbers, and tell where."""
    from lintra.figures import curves  # imports matplotlib, for which commands that draw nothing need not wait
    from lintra.figures.style import save, styled

    with styled():
        return save(curves.draw(plots), curves.rows(plots), folder, name)


def keys(seed: int) -> jax.Array:
    """Keys for tuning, for measuring and for the paper's protocol."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"`--seed` must be a whole number from 0 to 2^63 - 1, got {seed}.")
    return jax.random.split(jax.random.key(seed), 3)


def find_model(name: str, noise: str | None) -> tuple[AbstractModel, str]:
    """A model by its name or file, and the noise prior to use: the given one, its own, or that of most figures."""
    model, own_noise = zoo.find(name)
    return model, (own_noise or "uniform(0,5)") if noise is None else noise


def show(rows: list[dict[str, Any]], title: str, json: bool) -> None:
    """Print rows of losses as a table, or as JSON."""
    if json:
        terminal.print_rows(rows)
    else:
        terminal.print_table(rows, title, rows_of.COLUMNS)
