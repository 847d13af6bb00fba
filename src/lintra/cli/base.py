"""The application: options that commands share, and how every command ends."""

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from lintra import interrupts, terminal, zoo
from lintra import rows as rows_of
from lintra.memory import in_units
from lintra.models import AbstractModel
from lintra.noise import parse_noise
from lintra.plots import Plot
from lintra.sweep.processes import WorkerDiedError
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


_OPTIONS = {
    "folder": ("out",),
    "model": ("model_name",),
    "name": ("model_name", "model"),
    "num_repetitions": ("repetitions",),
    "num_sequences": ("sequences",),
    "path": ("model_name", "model", "zoo_file"),
    "predictor": ("model_name",),
}
"""Arguments of the library that commands have under another name: the first of these that a command has."""


def main() -> None:
    """Run the command line.

    Bad input and lack of memory end in one sentence. Errors that should not occur keep their traceback.
    """
    with interrupts.cleaned_up():
        try:
            app()
        except KeyboardInterrupt:
            interrupts.end()
        except SystemExit as stop:
            if stop.code == interrupts.CODE:
                interrupts.end()
            raise
        except Exception as error:
            ending = _ending(error)
            if ending is None:
                raise
            code, sentence = ending
            terminal.complain(in_options(sentence, sys.argv[1:2]))
            sys.exit(code)


def _ending(error: Exception) -> tuple[int, str] | None:
    """The exit code and the sentence for an error: 2 for bad input, 1 for the machine, `None` for a defect."""
    if isinstance(error, OSError) and error.errno is not None:
        place = f"'{error.filename}' cannot be used: " if error.filename else ""
        unchanged = "" if isinstance(error, FileNotFoundError) else " Existing files are unchanged."
        return 2, f"{place}{error.strerror}.{unchanged}"
    if isinstance(error, ValueError | TrainingFailedError | OSError | ImportError):
        return 2, str(error)
    lines = str(error).splitlines() or [type(error).__name__]
    if isinstance(error, MemoryError):
        return 1, f"There is not enough memory: {lines[0]}."
    if isinstance(error, jax.errors.JaxRuntimeError):
        lacking = re.search(r"Out of memory allocating (\d+) bytes", lines[0])
        if lacking:
            return 1, f"There is not enough memory: XLA could not allocate {in_units(int(lacking[1]))}."
        return 1, f"XLA failed: {lines[0]}"
    if isinstance(error, WorkerDiedError):
        return 1, f"A process of this command was killed ({error}), perhaps for lack of memory."
    return None


def in_options(sentence: str, command: Sequence[str]) -> str:
    """Replace the library's arguments, which are in backticks, by the options of a command.

    >>> in_options("`num_sequences` must be a whole number, got 0.5.", ["evaluate"])
    '`--sequences` must be a whole number, got 0.5.'
    >>> in_options("pass `standardise=True` or `model='auto'`", ["solve"])
    'pass `--standardise` or `--model auto`'
    """
    commands = getattr(typer.main.get_command(app), "commands", {})
    parameters = {p.name: p for name in command if name in commands for p in commands[name].params}

    def replace(match: re.Match[str]) -> str:
        for name in (match[1], *_OPTIONS.get(match[1], ())):
            if name in parameters:
                value = (match[2] or "").strip("'\"")
                return (
                    f"`{_shown(parameters[name])}`"
                    if value in ("", "True")
                    else f"`{_shown(parameters[name])} {value}`"
                )
        return match[0]

    return re.sub(r"`(\w+)(?:=([^`]+))?`", replace, sentence)


def _shown(parameter: Any) -> str:
    """A parameter as its user writes it: `--learning-rate`, or `MODEL` where it has no option."""
    if parameter.param_type_name == "option":
        return max(parameter.opts, key=len)
    return (parameter.metavar or parameter.name.upper()).removesuffix("...")


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
        terminal.print_table(rows, title, rows_of.COLUMNS)
