"""The command line: thin verbs over the library. A command's module is imported when the command is called."""

from lintra.cli.app import app, main

__all__ = ["app", "main"]
