"""The command that checks the paper's claims."""

from pathlib import Path
from typing import Annotated

import typer

from lintra import arguments, theory
from lintra.cli import terminal
from lintra.cli.app import app
from lintra.cli.options import Json, check_folder, draw
from lintra.runtime.cache import keep_compiled_programs

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
    keep_compiled_programs()
    findings = {}
    for name in claim or theory.CLAIMS:
        terminal.say(f"{name}: {theory.statement(name)}")
        findings |= theory.run([name])
    found = [check for finding in findings.values() for check in finding.checks]
    if json:
        terminal.print_rows([check.row() for check in found])
    else:
        terminal.print_table([check.row() | {"verdict": _verdict(check)} for check in found], "Claims", _COLUMNS)
    for name, finding in findings.items():
        if claim and finding.plots:
            terminal.say(f"Plotted in '{draw(finding.plots, out, name)[1]}'.")
    unexpected = sum(not check.expected for check in found)
    misprints = sum(check.misprint for check in found)
    terminal.say(f"{len(found) - unexpected} of {len(found)} are as expected; {misprints} of them are misprints.")
    if unexpected:
        raise typer.Exit(1)


def _verdict(check: theory.Check) -> str:
    if check.misprint:
        return "holds, though it should not" if check.holds else "misprint: does not hold"
    return "holds" if check.holds else "DOES NOT HOLD"
