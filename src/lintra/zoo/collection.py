"""A zoo: many models with their cards in one file."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.models.families import FAMILIES
from lintra.zoo.card import Card, check_card, check_name, parse_cards, to_json
from lintra.zoo.model_file import check_model, check_numbers, damping_record, with_record
from lintra.zoo.tensors import digest, read_tensors, write_tensors

_FORMAT = "lintra-zoo-1"


class UnknownModelError(ValueError):
    """There is no model of that name."""


class Zoo:
    """Models of one file.

    Arguments:
        path: The file, written by `write`.
    """

    def __init__(self, path: Path):
        self.path = path
        self._tensors, metadata = read_tensors(path, _FORMAT)
        try:
            shapes = {part: value.shape for part, value in self._tensors.items()}
            self.cards: dict[str, Card] = parse_cards(metadata.get("cards", ""), shapes)
        except ValueError as error:
            raise ValueError(f"`path` '{path}' is not a zoo that lintra can read: {error}") from None

    def load(self, name: str) -> AbstractModel:
        """The model of this name, after a look at its hash."""
        card, start = self.card(name), f"{name}/"
        parameters = {
            part.removeprefix(start): value for part, value in self._tensors.items() if part.startswith(start)
        }
        if digest(parameters, {}) != card["sha256"]:
            raise ValueError(f"The weights of {name!r} do not match the hash on their card.")
        for part, value in parameters.items():
            check_numbers(f"{name}/{part}", value)
        with in_64_bits():
            model = FAMILIES[card["family"]].from_parameters(parameters, card["context"], card["dim"])
            check_model(model, card)
            return with_record(model, card.get("damping"))

    def card(self, name: str) -> Card:
        """The card of this name."""
        if name not in self.cards:
            near = difflib.get_close_matches(name, self.cards, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownModelError(f"`name` {name!r} is not in the zoo of {len(self.cards)} models.{hint}")
        return self.cards[name]


def write(path: Path, models: Mapping[str, tuple[AbstractModel, Card]]) -> None:
    """Write a zoo: for every name a model and what its card says besides what the model itself knows."""
    tensors, cards = {}, {}
    for name, (model, more) in models.items():
        parameters = {part: np.asarray(value) for part, value in model.parameters().items()}
        tensors |= {f"{name}/{part}": value for part, value in parameters.items()}
        sizes = {
            "family": model.family,
            "layers": model.num_layers,
            "heads": model.num_heads,
            "context": model.num_examples,
            "dim": model.dim,
        }
        if (damping := damping_record(model)) is not None:
            sizes["damping"] = damping
        cards[check_name(name)] = to_json(check_card(name, sizes | more | {"sha256": digest(parameters, {})}))
    write_tensors(path, tensors, {"format": _FORMAT, "cards": json.dumps(cards, sort_keys=True)})
