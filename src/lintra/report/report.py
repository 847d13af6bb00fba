"""Table 1, all figures and the paper's statements on one page."""

import math
import platform
import time
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from lintra import figures
from lintra._version import __version__
from lintra.arguments import KeyLike
from lintra.display import to_csv
from lintra.evaluation import paper
from lintra.evaluation.measurement import AbstractMeasurement, measure_all
from lintra.evaluation.table1_column import DEPTHS, Column
from lintra.figures import FIGURES
from lintra.figures.style import STYLES
from lintra.models.families import PAPER_FAMILIES
from lintra.models.spec import ModelSpec
from lintra.report.page import Picture, page
from lintra.report.statements import STATEMENTS, check_statement, statement_rows
from lintra.report.table1_summary import summarise
from lintra.runtime.files import write_atomic
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.card import Card
from lintra.zoo.collection import UnknownModelError, Zoo

__all__ = ["needs", "write_report"]

TABLE1 = tuple(map(Column, paper.NOISES))
"""Table 1, column by column."""

_DIVERGED = 1000  # a loss that is counted as divergence; zero weights have 5 on average at d = 10


def write_report(
    zoo: Zoo,
    folder: Path,
    *,
    executor: Executor,
    num_sequences: int = 1_000_000,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> Path:
    """Measure everything, and write Table 1, the figures and the page into a folder.

    Args:
        zoo: The models.
        folder: Folder for the files.
        executor: Runs each measurement in a process of its own.
        num_sequences: Number of fresh sequences for a column of Table 1.
        key: Randomness, a whole number or a key.
        progress: Told after every measurement and figure.

    Returns:
        The path of the page.
    """
    started = time.monotonic()
    results = measure_all(needs(), zoo, executor=executor, num_sequences=num_sequences, key=key, progress=progress)
    progress.message(f"Everything is measured ({time.monotonic() - started:.0f} s)")
    columns = [results[need] for need in TABLE1]
    rows = [row for column in columns for row in column.rows]
    write_atomic(folder / "table1.csv", to_csv([row.to_row() for row in rows]).encode())
    write_atomic(folder / "table1-details.csv", to_csv([row.to_details() for row in rows]).encode())
    verdicts = [check_statement(statement, results) for statement in STATEMENTS]
    write_atomic(folder / "summary.txt", "".join(f"{line}\n" for line in summarise(columns)).encode())
    write_atomic(folder / "statements.csv", to_csv(statement_rows(verdicts)).encode())
    pictures = []
    for name, module in FIGURES.items():
        try:
            figures.draw_figure(name, results, folder)
        except UnknownModelError as error:
            progress.message(f"Figure {name} cannot be drawn: {error}")
            continue
        pictures.append(Picture(f"Figure {name}", module.CAPTION, folder / f"{figures.file_name(name)}.png"))
        progress.message(f"Figure {name} is drawn ({time.monotonic() - started:.0f} s)")
    specs = [ModelSpec(family, depth, c.noise) for c in TABLE1 for family in PAPER_FAMILIES for depth in DEPTHS]
    cards = list(zoo.cards.values())
    facts = [
        ("Models", _training(cards)),
        ("Tails", _tails(cards)),
        ("Sequences", f"{num_sequences:,} fresh ones a column, the same for all methods"),
        ("This report", f"took {(time.monotonic() - started) / 60:.1f} minutes"),
        ("Made by", f"lintra {__version__}, Python {platform.python_version()}, {platform.machine()}"),
    ]
    text = page(
        facts=facts,
        columns=columns,
        pictures=pictures,
        verdicts=verdicts,
        missing=[spec.name for spec in specs if spec.name not in zoo.cards],
    )
    write_atomic(folder / "report.html", text.encode())
    return folder / "report.html"


def needs() -> list[AbstractMeasurement[Any]]:
    """Return what the report is made from, the longest measurements first."""
    of_figures = [need for module in reversed(list(FIGURES.values())) for need in module.NEEDS]
    of_statements = [need for statement in STATEMENTS for need in statement.needs]
    return list(dict.fromkeys([*of_figures, *TABLE1, *of_statements]))


def _tails(cards: list[Card]) -> str:
    """Return how many models explode, by their cards: at the gate if they say so, else in their own evaluation."""
    judged = [card for card in cards if card.get("safe") is not None]
    if judged:
        return _gate(judged, len(cards))
    infinite = sum(not _is_finite(card.get("worst")) for card in cards)
    diverged = sum(not _is_finite(card.get("worst")) or card["worst"] > _DIVERGED for card in cards)
    return (
        f"{diverged} of {len(cards)} models have a loss above {_DIVERGED:,} on at least one of the sequences that "
        f"their cards were measured on; {infinite} of these are infinite"
    )


def _gate(judged: list[Card], num_models: int) -> str:
    """Return how many models are safe as used and as printed, on how many sequences, and what this means."""
    num_sequences = min(card.get("gate_sequences") or 0 for card in judged)
    used = sum(card["safe"] for card in judged)
    printed = sum(bool(card.get("printed_safe")) for card in judged)
    others = num_models - len(judged)
    rate = f": a rate below {3 / num_sequences:.0e} at a confidence of 95 %" if num_sequences else ""
    return (
        f"of {num_models} models {used} are safe as used (damped) and {printed} as printed, with no explosion on "
        f"{num_sequences:,} sequences{rate}" + (f"; of {others} models this is not known" if others else "")
    )


def _is_finite(loss: float | None) -> bool:
    """Whether a number of a card is finite; older cards have None for an infinite one."""
    return loss is not None and math.isfinite(loss)


def _training(cards: list[Card]) -> str:
    """How many models there are and how long they took, by family."""
    seconds = {(card["family"], card["sha256"]): card["seconds"] or 0.0 for card in cards}  # best seeds are twice
    parts = []
    for family, style in STYLES.items():
        of_family = [value for (name, _), value in seconds.items() if name == family]
        if of_family:
            parts.append(f"{len(of_family)} {style.label} in {sum(of_family) / 60:.0f}")
    total = sum(seconds.values()) / 60
    return f"{len(seconds)}, trained in {total:.0f} minutes of one core ({', '.join(parts)} minutes)"
