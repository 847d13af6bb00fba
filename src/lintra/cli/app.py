"""The application: its commands, and how every command ends."""

import importlib
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lintra._version import __version__
from lintra.cli.commands import COMMANDS, misspells_an_option, outline
from lintra.runtime import interrupts


class _Commands(TyperGroup):
    """All commands, of which only the one that is called is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return outline(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        self.commands = dict.fromkeys(COMMANDS)  # from which typer takes suggestions for a misspelled name
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest


app = typer.Typer(cls=_Commands, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def load_command(name: str) -> Any:
    """Import a command, and return it as an object of typer."""
    _import_command(name)
    group: Any = typer.main.get_command(app)
    return group.commands[name]


def _import_command(name: str) -> None:
    importlib.import_module(f"lintra.cli.{COMMANDS[name].module}")


def _print_version(is_given: bool) -> None:
    if is_given:
        print(f"lintra {__version__}")
        raise typer.Exit


@app.callback()
def _lintra(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Linear transformers as in-context learners."""


_OPTIONS = {
    "context": ("num_examples",),
    "folder": ("out",),
    "heads": ("num_heads",),
    "layers": ("num_layers",),
    "model": ("model_name",),
    "name": ("model_name", "model"),
    "num_gate_sequences": ("gate_sequences",),
    "num_layers": ("layers",),
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
    name, arguments = "".join(sys.argv[1:2]), sys.argv[2:]
    if name in COMMANDS and misspells_an_option(name, arguments):
        outline(name)(arguments, prog_name=f"lintra {name}")  # ends with that message, and imports nothing
    if name in COMMANDS:
        _import_command(name)  # here, where an interrupt ends the process at once
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
            from lintra.cli import terminal

            code, message = ending
            terminal.print_error(in_options(message, sys.argv[1:2]))
            sys.exit(code)


def _ending(error: Exception) -> tuple[int, str] | None:
    """The exit code and the sentence for an error: 2 for bad input, 1 for the machine, `None` for a defect."""
    import jax  # here, since it takes seconds and a command that fails has imported it

    from lintra.runtime.memory import in_units
    from lintra.runtime.processes import WorkerDiedError
    from lintra.training.stage import TrainingFailedError

    if isinstance(error, OSError) and error.errno is not None:
        prefix = f"'{error.filename}' cannot be used: " if error.filename else ""
        unchanged = "" if isinstance(error, FileNotFoundError) else " Existing files are unchanged."
        return 2, f"{prefix}{error.strerror}.{unchanged}"
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


def in_options(message: str, command: Sequence[str]) -> str:
    """Replace the library's arguments, which are in backticks, by the options of a command.

    >>> in_options("`num_sequences` must be a whole number, got 0.5.", ["evaluate"])
    '`--sequences` must be a whole number, got 0.5.'
    >>> in_options("pass `standardise=True` or `model='auto'`", ["solve"])
    'pass `--standardise` or `--model auto`'
    """
    parameters = {p.name: p for name in command if name in COMMANDS for p in load_command(name).params}

    def replace(match: re.Match[str]) -> str:
        for name in (match[1], *_OPTIONS.get(match[1], ())):
            if name in parameters:
                value = (match[2] or "").strip("'\"")
                return (
                    f"`{_as_written(parameters[name])}`"
                    if value in ("", "True")
                    else f"`{_as_written(parameters[name])} {value}`"
                )
        return match[0]

    return re.sub(r"`(\w+)(?:=([^`]+))?`", replace, message)


def _as_written(parameter: Any) -> str:
    """A parameter as its user writes it: `--learning-rate`, or `MODEL` where it has no option."""
    if parameter.param_type_name == "option":
        return parameter.opts[0]
    return (parameter.metavar or parameter.name.upper()).removesuffix("...")
