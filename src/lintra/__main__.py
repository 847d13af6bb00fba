"""`python -m lintra` is the command line."""

from lintra.cli import main

main()
