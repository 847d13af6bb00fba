"""Cards of models: what is known about a model, validated like any other input."""

import json
import math
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from lintra import arguments
from lintra.models.families import FAMILIES
from lintra.zoo.model_file import LIMITS, check_record, check_sizes, printed_noise

Card = dict[str, Any]
"""What is known about a model:

- `family`, `layers`, `heads`, `context` (number of examples), `dim`, `noise`, `damping`, `sha256` of the weights;
- `recipe`, `settings`, `seed`, `seeds`, `seconds`, `selection_loss`: how it was trained;
- `adjusted_loss`, `standard_error`, `median`, `trimmed_mean`, `worst`, `worse_than_zero` on `sequences` fresh
  sequences, as printed; the same under `damped` for the model as it is used;
- `safe`, `num_exploded`, `gate_worst`: whether the model as used explodes on one of `gate_sequences` sequences of
  the seed `gate_seed`, on how many, and its largest loss there; the same with `printed_` for the model as printed
  and with `float32_` for the model as used in 32 bits. `gate_candidates` counts the candidates of this name that
  the gate has judged.

An infinite number is `math.inf`, and the text `inf` in a file, since JSON has no infinity.
"""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.,:()_-]{0,99}")
_LONGEST = 1000  # characters of a text on a card; the longest published one has 17
_DEEPEST = 4  # settings in settings; published cards have one level
_LARGEST = sys.float_info.max
_COUNTS = (
    *("seed", "seeds", "sequences", "num_exploded", "printed_num_exploded", "float32_num_exploded"),
    *("gate_sequences", "gate_seed", "gate_candidates"),
)
_FLAGS = ("safe", "printed_safe", "float32_safe")
_LOSSES = ("adjusted_loss", "standard_error", "median", "trimmed_mean", "worst", "worse_than_zero")
_NUMBERS = (  # None where they were not measured
    *(*_LOSSES, "gate_worst", "printed_gate_worst", "float32_gate_worst"),
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
        cards = json.loads(text, parse_constant=_reject_constant)
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
        for field in _FLAGS:
            if card.get(field) is not None and not isinstance(card[field], bool):
                raise ValueError(f"`{field}` must be true or false, got {card[field]!r:.99}.")
        card = _check_numbers(card, _NUMBERS)
        if card.get("damped") is not None:
            if not isinstance(card["damped"], dict):
                raise ValueError(f"`damped` must be a JSON object, got {type(card['damped']).__name__}.")
            card["damped"] = _check_numbers(card["damped"], _LOSSES)
        if not isinstance(card.get("sha256"), str) or not re.fullmatch("[0-9a-f]{64}", card["sha256"]):
            raise ValueError(f"`sha256` must be 64 hexadecimal digits, got {card.get('sha256')!r:.99}.")
        for field, value in to_json(card).items():
            _check_plain(field, value)
        if card.get("damping") is not None:
            check_record(card["damping"], card["layers"])
        noise = card.get("noise") or ""
        if not isinstance(noise, str):
            raise ValueError(f"`noise` must be text, got {noise!r:.99}.")
        return card | {"noise": _printed_noise(noise)}
    except ValueError as error:
        raise ValueError(f"the card of {name!r} is not valid: {error}") from None


def to_json(card: Card) -> Card:
    """Return a card for JSON, which has no infinity and no NaN: with the text `inf`, and `None` for NaN.

    >>> to_json({"worst": math.inf, "damped": {"worst": 4.5}, "seconds": math.nan})
    {'worst': 'inf', 'damped': {'worst': 4.5}, 'seconds': None}
    """

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        return value

    return plain(card)


def _reject_constant(name: str) -> None:
    """Reject NaN and Infinity, which Python reads although JSON has none."""
    raise ValueError(f"`cards` must be JSON, which has no {name}.")


def _check_numbers(card: Card, fields: tuple[str, ...]) -> Card:
    """Return a copy in which these fields are numbers or None, with infinity for the text `inf`."""
    numbers = {field: card[field] for field in fields if field in card}
    numbers = {field: math.inf if value == "inf" else value for field, value in numbers.items()}
    for field, value in numbers.items():
        if value != math.inf:
            _check_number(field, value)
    return card | numbers


def _check_number(field: str, value: Any) -> None:
    """Reject what is neither a finite number nor None."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and -_LARGEST <= value <= _LARGEST):
        raise ValueError(f'`{field}` must be a finite number, "inf" or null, got {value!r:.99}.')


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
