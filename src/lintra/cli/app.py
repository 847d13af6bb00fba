"""The application: its commands, and how every command ends."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import jax
import typer

from lintra.cli import terminal
from lintra.runtime import interrupts
from lintra.runtime.memory import in_units
from lintra.runtime.processes import WorkerDiedError
from lintra.training.stage import TrainingFailedError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


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
