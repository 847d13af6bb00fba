"""Calls of commands."""

from typer.testing import CliRunner

from lintra.cli import app


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
