"""Table 1, all figures and the paper's statements on one page."""

import platform
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from lintra import figures
from lintra._version import __version__
from lintra.display import to_csv
from lintra.evaluation import column, paper
from lintra.evaluation.measurement import Measurements
from lintra.figures import FIGURES
from lintra.figures.style import LOOKS
from lintra.models import families
from lintra.report.claims import CLAIMS, Evidence, judge
from lintra.report.page import Picture, page
from lintra.runtime.files import write_aside
from lintra.zoo.card import Card
from lintra.zoo.collection import UnknownModelError

__all__ = ["make"]

_DIVERGED = 1000  # a loss that is counted as divergence; zero weights have 5 on average at d = 10


def make(
    measurements: Measurements,
    folder: Path,
    executor: Executor,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Measure everything in an executor's processes, and write Table 1, the figures and the page into a folder."""
    begun = time.monotonic()
    pieces = [piece for module in reversed(FIGURES.values()) for piece in module.pieces()]  # the longest first
    measurements.ahead([*pieces, *(("column", noise) for noise in paper.NOISES)], executor)
    say(f"Everything is measured ({time.monotonic() - begun:.0f} s)")
    columns = [measurements.column(noise) for noise in paper.NOISES]
    rows = [row for column in columns for row in column.rows]
    for name, part in (("table1", column.figures), ("table1-details", column.details)):
        write_aside(folder / f"{name}.csv", to_csv([part(row) for row in rows]).encode())
    evidence, pictures = Evidence(measurements, {}), []
    for number, module in FIGURES.items():
        try:
            evidence.figures[number], _ = figures.make(number, measurements, folder)
        except UnknownModelError as error:
            say(f"Figure {number} cannot be drawn: {error}")
            continue
        pictures.append(Picture(f"Figure {number}", module.CAPTION, folder / f"figure{number}.png"))
        say(f"Figure {number} is drawn ({time.monotonic() - begun:.0f} s)")
    verdicts = [judge(claim, evidence) for claim in CLAIMS]
    cards = measurements.zoo.cards
    wanted = [f"{v}-{depth}-{noise}" for noise in paper.NOISES for v in families.VARIANTS for depth in range(1, 8)]
    facts = [
        ("Models", _training(list(cards.values()))),
        ("Tails", _tails(list(cards.values()))),
        ("Sequences", f"{measurements.sequences:,} fresh ones a column, the same for all methods"),
        ("This report", f"took {(time.monotonic() - begun) / 60:.1f} minutes"),
        ("Made by", f"lintra {__version__}, Python {platform.python_version()}, {platform.machine()}"),
    ]
    missing = [name for name in wanted if name not in cards]
    text = page(facts=facts, columns=columns, pictures=pictures, verdicts=verdicts, missing=missing)
    write_aside(folder / "report.html", text.encode())
    return folder / "report.html"


def _tails(cards: list[Card]) -> str:
    """Return how many models diverge, by their cards; an infinite loss is None there."""
    infinite = sum(card.get("worst") is None for card in cards)
    diverged = sum(card.get("worst") is None or card["worst"] > _DIVERGED for card in cards)
    return (
        f"{diverged} of {len(cards)} models have a loss above {_DIVERGED:,} on at least one of the sequences that "
        f"their cards were measured on; {infinite} of these are infinite"
    )


def _training(cards: list[Card]) -> str:
    """How many models there are and how long they took, by family."""
    seconds = {(card["family"], card["sha256"]): card["seconds"] or 0.0 for card in cards}  # best seeds are twice
    parts = []
    for family, look in LOOKS.items():
        own = [value for (name, _), value in seconds.items() if name == family]
        if own:
            parts.append(f"{len(own)} {look.label} in {sum(own) / 60:.0f}")
    total = sum(seconds.values()) / 60
    return f"{len(seconds)}, trained in {total:.0f} minutes of one core ({', '.join(parts)} minutes)"
