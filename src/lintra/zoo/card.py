"""Cards of models: what is known about a model, validated like any other input."""

import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from lintra import arguments
from lintra.models.families import FAMILIES
from lintra.zoo.model_file import LIMITS, check_record, check_sizes, printed_noise

Card = dict[str, Any]
"""Family, layers, heads, context, dim, noise, recipe, seeds, seconds, adjusted loss, tail, hash."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.,:()_-]{0,99}")
_LONGEST = 1000  # characters of a text on a card; the longest published one has 17
_DEEPEST = 4  # settings in settings; published cards have one level
_LARGEST = sys.float_info.max
_COUNTS = ("seed", "seeds", "sequences")
_NUMBERS = (  # None where they are infinite or were not measured
    *("adjusted_loss", "standard_error", "median", "worst", "worse_than_zero"),
    *("selection_loss", "seconds", "bayes_floor", "ada_ridge"),
)

_printed_noise = cache(printed_noise)


def check_name(name: Any) -> str:
    """Return the name of a model, or reject one that is not safe in files, pages and programs.

    >>> check_name("gd++-7-choice(1:0.2,3:0.8)-h2")
    'gd++-7-choice(1:0.2,3:0.8)-h2'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"`name` must be 1 to 100 letters, digits and + . , : ( ) _ -, and begin with a letter or digit, "
            f"got {name!r:.99}."
        )
    return name


def parse_cards(text: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Card]:
    """Read cards from JSON.

    Arguments:
        text: An object with a card for every name.
        shapes: The shape of every array, which is called `name/parameter`.

    Raises:
        ValueError: If a card has a field of the wrong type or outside of its limits, or if arrays and cards
            do not belong together.
    """
    try:
        cards = json.loads(text)
    except RecursionError:
        raise ValueError("`cards` must not be nested so deeply.") from None
    if not isinstance(cards, dict):
        raise ValueError(f"`cards` must be a JSON object, got {type(cards).__name__}.")
    checked = {check_name(name): check_card(name, card) for name, card in cards.items()}
    expected = {
        f"{name}/{part}" for name, card in checked.items() for part in FAMILIES[card["family"]].parameter_names()
    }
    if expected != set(shapes):
        odd = min(expected ^ set(shapes))
        raise ValueError(f"cards and arrays must belong together, but {odd!r:.99} is in one of them only.")
    for name, shape in shapes.items():
        card = checked[name.rpartition("/")[0]]
        if shape[:2] != (card["layers"], card["heads"]):
            raise ValueError(
                f"array {name!r} must have shape ({card['layers']}, {card['heads']}, ...), got {shape}."
            )
    return checked


def check_card(name: str, card: Any) -> Card:
    """Return a card with its prior as lintra prints it, or reject it."""
    if not isinstance(card, dict):
        raise ValueError(f"the card of {name!r} must be a JSON object, got {type(card).__name__}.")
    try:
        arguments.one_of("family", card.get("family"), FAMILIES)
        check_sizes({size: arguments.whole_number(size, card.get(size)) for size in LIMITS})
        for field in _COUNTS:
            if card.get(field) is not None:
                arguments.whole_number(field, card[field], minimum=0)
        for field in _NUMBERS:
            _check_number(field, card.get(field))
        if not isinstance(card.get("sha256"), str) or not re.fullmatch("[0-9a-f]{64}", card["sha256"]):
            raise ValueError(f"`sha256` must be 64 hexadecimal digits, got {card.get('sha256')!r:.99}.")
        for field, value in card.items():
            _check_plain(field, value)
        if card.get("damping") is not None:
            check_record(card["damping"], card["layers"])
        noise = card.get("noise") or ""
        if not isinstance(noise, str):
            raise ValueError(f"`noise` must be text, got {noise!r:.99}.")
        return card | {"noise": _printed_noise(noise)}
    except ValueError as error:
        raise ValueError(f"the card of {name!r} is not valid: {error}") from None


def _check_number(field: str, value: Any) -> None:
    """Reject what is neither a finite number nor None."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and -_LARGEST <= value <= _LARGEST):
        raise ValueError(f"`{field}` must be a finite number or null, got {value!r:.99}.")


def _check_plain(field: str, value: Any, depth: int = 0) -> None:
    """Reject text that is long or not printable, and values in values in values."""
    if not isinstance(field, str) or not re.fullmatch("[A-Za-z0-9_.-]{1,100}", field):
        raise ValueError(f"a field must be called by 1 to 100 letters and digits, got {field!r:.99}.")
    if isinstance(value, str) and (len(value) > _LONGEST or not value.isprintable()):
        raise ValueError(f"`{field}` must be at most {_LONGEST} printable characters, got {value!r:.99}.")
    if isinstance(value, dict | list):
        if depth == _DEEPEST:
            raise ValueError(f"`{field}` must not be nested so deeply.")
        for name, part in value.items() if isinstance(value, dict) else ((field, part) for part in value):
            _check_plain(name, part, depth + 1)
    elif not isinstance(value, str | bool):
        _check_number(field, value)
