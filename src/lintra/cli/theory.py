"""The command that checks the paper's claims."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, theory
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import Json, check_folder, draw
from lintra.runtime.cache import enable_compilation_cache

_COLUMNS = {
    "claim": "claim",
    "statement": "statement",
    "measured": "measured",
    "relation": "",
    "predicted": "predicted",
    "tolerance": "tolerance",
    "verdict": "verdict",
}


@app.command("theory")
def theory_command(
    claim: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(theory.CLAIMS)}; default: all.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the plots of claims that are named.")] = Path("theory"),
    json: Json = False,
) -> None:
    """Check the paper's claims: what was measured, what was predicted, and whether it holds."""
    for name in claim or ():
        arguments.one_of("claim", name, tuple(theory.CLAIMS))
    if claim:
        check_folder(out)
    enable_compilation_cache()
    results = {}
    for name in claim or theory.CLAIMS:
        terminal.print_message(f"{name}: {theory.statement(name)}")
        results |= theory.check_claims([name])
    checks = [check for result in results.values() for check in result.checks]
    if json:
        terminal.print_rows([check.to_row() for check in checks])
    else:
        terminal.print_table(
            [check.to_row() | {"verdict": _verdict(check)} for check in checks], "Claims", _COLUMNS
        )
    for name, result in results.items():
        if claim and result.plots:
            terminal.print_message(f"Plotted in '{draw(result.plots, out, name)[1]}'.")
    unexpected = sum(not check.expected for check in checks)
    misprints = sum(check.misprint for check in checks)
    terminal.print_message(
        f"{len(checks) - unexpected} of {len(checks)} are as expected; {misprints} of them are misprints."
    )
    if unexpected:
        raise typer.Exit(1)


def _verdict(check: theory.Check) -> str:
    if check.misprint:
        return "holds, though it should not" if check.holds else "misprint: does not hold"
    return "holds" if check.holds else "DOES NOT HOLD"
