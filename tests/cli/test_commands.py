"""Commands are imported when they are called: what is said before that is true, and quick."""

import importlib
import pkgutil
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import lintra
from lintra import cli
from lintra.cli.app import app, load_command
from lintra.cli.commands import COMMANDS, Command, misspells_an_option


def _described(name):
    """A command's entry of the table, from the command itself."""
    command = load_command(name)
    usage = command.collect_usage_pieces(command.make_context(name, [], resilient_parsing=True))
    options = [
        spelled if parameter.is_flag else f"{spelled}="
        for parameter in command.params
        if parameter.param_type_name == "option"
        for spelled in (*parameter.opts, *parameter.secondary_opts)
    ]
    module = command.callback.__module__.removeprefix("lintra.cli.")
    return Command(module, command.help.split("\n\n")[0], " ".join(usage), " ".join(options))


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_table_says_of_a_command_is_what_the_command_says(name):
    assert COMMANDS[name] == _described(name)


def test_the_table_has_every_command():
    for module in pkgutil.iter_modules(cli.__path__):
        importlib.import_module(f"lintra.cli.{module.name}")
    group: Any = typer.main.get_command(app)
    assert set(group.commands) == set(COMMANDS)


def test_the_help_shows_every_command_with_its_line():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    for name, command in COMMANDS.items():
        assert f" {name} " in shown
        assert command.help in shown


def test_help_of_a_command_is_its_own():
    shown = CliRunner().invoke(app, ["evaluate", "--help"], env={"COLUMNS": "200"}).output
    assert "Rescale the Gram matrix to the training length." in shown


_CALL = """
import sys
from lintra.cli import main
sys.argv = ["lintra", *sys.argv[1:]]
try:
    main()
finally:
    loaded = {"jax", "numpy", "pydantic", "equinox", "rich.progress"} & set(sys.modules)
    print("loaded:", *loaded)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--help"], 0, "Linear transformers as in-context learners."),
        (["--version"], 0, f"lintra {lintra.__version__}\n"),
        (["--hlep"], 2, "No such option: --hlep"),
        (["evaluate", "full-7-uniform(0,5)", "--sequnces", "10"], 2, "No such option: --sequnces"),
        (["train", "--laiers=7"], 2, "No such option: --laiers"),
    ],
)
def test_help_version_and_misspelled_options_import_nothing_heavy(arguments, code, sentence):
    done = subprocess.run([sys.executable, "-c", _CALL, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert sentence in done.stdout + done.stderr
    assert done.stdout.endswith("loaded:\n")


def test_a_misspelled_option_is_rejected_as_the_command_itself_rejects_it(error_message):
    said = error_message("evaluate", "full-7-uniform(0,5)", "--sequnces", "10")
    itself = CliRunner().invoke(app, ["evaluate", "full-7-uniform(0,5)", "--sequnces", "10"], prog_name="lintra")
    assert said == itself.stderr


def test_a_misspelled_command_is_rejected_with_a_suggestion(error_message):
    assert "Did you mean 'evaluate'?" in error_message("evaluat")


@pytest.mark.parametrize(
    ("arguments", "misspelled"),
    [
        (["--sequences", "10", "--json"], False),
        (["--sequences=10", "--no-rescale"], False),
        (["--help"], False),
        (["--noise", "--odd"], False),
        (["--", "--odd"], False),
        (["--json", "--odd"], True),
        (["--odd=1"], True),
    ],
)
def test_only_unknown_options_are_taken_for_misspelled(arguments, misspelled):
    assert misspells_an_option("evaluate", arguments) is misspelled
