"""The commands by name: what can be said about them before they are imported, which takes seconds."""

import inspect
from typing import Annotated, Any, NamedTuple

import typer


class Command(NamedTuple):
    """A command, as far as help and misspelled options need it. A test compares it with the command itself.

    Attributes:
        module: The module in `lintra.cli` that has it.
        help: The first paragraph of its help.
        usage: What follows its name in the usage line.
        options: Its options, separated by spaces; those that take a value end in `=`.
    """

    module: str
    help: str
    usage: str
    options: str


COMMANDS = {
    "bench": Command(
        "bench",
        "Speed, ours against the reference, side by side in one run, on one thread each.",
        "[OPTIONS]",
        "--case= --table --plot= --regressions --json",
    ),
    "baselines": Command(
        "evaluate",
        "Adjusted loss of the oracle, the ridge baselines and the Bayes floor, beside the printed losses.",
        "[OPTIONS]",
        "--noise= --method= --dim= --examples= --context= --sequences= --seed= --protocol= "
        "--repetitions= --tail --json",
    ),
    "evaluate": Command(
        "evaluate",
        "Adjusted loss of models on fresh sequences, beside the printed losses.",
        "[OPTIONS] {MODEL...}...",
        "--noise= --examples= --context= --rescale --no-rescale --every-layer --no-every-layer "
        "--method= --sequences= --seed= --protocol= --repetitions= --tail --json",
    ),
    "experiment": Command(
        "experiment",
        "Run an experiment and store its rows with its settings and seed. An interrupted one is resumed.",
        "[OPTIONS] {name}",
        "--out= --run= --seed=",
    ),
    "explain": Command(
        "explain",
        "What a model does: its ω, how layers rescale and step, the noise it acts on, what it needs, its damping.",
        "[OPTIONS] {model}",
        "--noise= --out= --sequences= --seed= --json",
    ),
    "export": Command(
        "explain",
        "Write the algorithm that a model is: as a program that needs NumPy alone, as pseudo-code, or as LaTeX.",
        "[OPTIONS] {model}",
        "--format= --out=",
    ),
    "explore": Command(
        "explore",
        "Open the explorer: one page that runs the models of the zoo, with no server and no outside address.",
        "[OPTIONS]",
        "--out= --zoo= --no-open --measure --sequences= --seed=",
    ),
    "figure": Command(
        "report",
        "Draw figures from the published models: CSV, PNG, PDF and SVG.",
        "[OPTIONS] {number}...",
        "--out= --zoo= --sequences= --seed=",
    ),
    "report": Command(
        "report",
        "Measure Table 1 and draw all figures from the published models, on one page: report.html.",
        "[OPTIONS]",
        "--out= --zoo= --sequences= --seed=",
    ),
    "solve": Command(
        "solve",
        "The weights of very many small regressions, each from its own examples.",
        "[OPTIONS] {path}",
        "--out= --model= --task= --label= --standardise --no-standardise --fit-intercept --no-fit-intercept",
    ),
    "specialists": Command(
        "solve",
        "Train the specialists that `solve` and the regressor choose from: a quarter of an hour on two cores.",
        "[OPTIONS] {out}",
        "--workers=",
    ),
    "sweep": Command(
        "sweep",
        "Train a grid of models. Stored models are not trained again, so an interrupted sweep is resumed.",
        "[OPTIONS] {grid}",
        "--store= --noise= --layers= --recipe= --steps= --workers= --shard= --scheduler= --scheduler-file= --json",
    ),
    "theory": Command(
        "theory",
        "Check the paper's claims: what was measured, what was predicted, and whether it holds.",
        "[OPTIONS] [claim]...",
        "--out= --json",
    ),
    "train": Command(
        "train",
        "Train a model. An interrupted run is resumed. Its folder has the settings, the metrics and the model.",
        "[OPTIONS]",
        "--family= --variant= --layers= --noise= --recipe= --heads= --dim= --examples= --context= "
        "--starts= --seeds= --objective= --steps= --learning-rate= --seed= --out= --sequences= "
        "--json",
    ),
    "publish": Command(
        "zoo",
        "Make a zoo from the models of a sweep: measure them on fresh sequences and write weights and cards.",
        "[OPTIONS] {out}",
        "--grid= --store= --sequences= --gate-sequences= --unsafe --seed=",
    ),
    "gate": Command(
        "zoo",
        "Measure the models of a zoo again and write it with new cards: losses, tails, and the gate.",
        "[OPTIONS] {out}",
        "--zoo= --sequences= --gate-sequences= --state= --seed= --json",
    ),
    "zoo": Command(
        "zoo",
        "The published models, with how they were made and how good they are.",
        "[OPTIONS]",
        "--zoo= --json",
    ),
}
"""All commands, in the order of the help."""


def outline(name: str) -> Any:
    """A command that shows its line of help and rejects options that it does not have, and can do no more."""
    command, parameters = COMMANDS[name], []
    for option in command.options.split():
        kind = str if option.endswith("=") else bool
        parameter = option.strip("-=").replace("-", "_")
        annotation = Annotated[kind | None, typer.Option(option.removesuffix("="))]
        parameters.append(
            inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        )

    def callback(**_: Any) -> None: ...

    callback.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    callback.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    single = typer.Typer(add_completion=False)
    single.command(name, help=command.help, options_metavar=command.usage)(callback)
    return typer.main.get_command(single)


def misspells_an_option(name: str, arguments: list[str]) -> bool:
    """Whether one of the arguments is an option that the command does not have.

    >>> misspells_an_option("evaluate", ["full-7-uniform(0,5)", "--sequnces", "10"])
    True
    >>> misspells_an_option("evaluate", ["--noise", "--sequnces"])  # a value, if an odd one
    False
    """
    options, before = COMMANDS[name].options.split(), ""
    for argument in arguments:
        if argument == "--":  # all others are no options
            return False
        option = argument.partition("=")[0]
        is_known = option in options or f"{option}=" in options or option == "--help"
        if option.startswith("--") and not is_known and f"{before}=" not in options:
            return True
        before = argument
    return False
