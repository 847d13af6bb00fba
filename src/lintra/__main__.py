"""`python -m lintra` is the command line."""

from lintra.cli.app import main

main()
