"""Published weights by name, each with a card that says what it is, how it was made and how good it is."""

import difflib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from lintra import forks
from lintra.cards import Card, check_card, check_name, parse_cards
from lintra.losses import finite
from lintra.models import FAMILIES, AbstractModel
from lintra.storage import check_model, check_numbers, digest, load_with_metadata, read_tensors, write_tensors

__all__ = ["Card", "UnknownModelError", "Zoo", "card", "find", "load", "names", "published", "read", "write"]

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
        own = {part.removeprefix(start): value for part, value in self._tensors.items() if part.startswith(start)}
        if digest(own, {}) != card["sha256"]:
            raise ValueError(f"The weights of {name!r} do not match the hash on their card.")
        for part, value in own.items():
            check_numbers(f"{name}/{part}", value)
        model = FAMILIES[card["family"]].from_parameters(own, card["context"], card["dim"])
        check_model(model, card)
        return model

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
        own = {part: np.asarray(value) for part, value in model.parameters().items()}
        tensors |= {f"{name}/{part}": value for part, value in own.items()}
        known = {
            "family": model.family,
            "layers": model.num_layers,
            "heads": model.num_heads,
            "context": model.context,
            "dim": model.dim,
        }
        cards[check_name(name)] = check_card(name, finite(known | more | {"sha256": digest(own, {})}))
    write_tensors(path, tensors, {"format": _FORMAT, "cards": json.dumps(cards, sort_keys=True)})


@cache
def published(file: str = "zoo.safetensors") -> Zoo:
    """The zoo that comes with lintra, or another of its files."""
    with resources.as_file(resources.files("lintra").joinpath("data", file)) as path:
        if not path.exists():
            raise FileNotFoundError(
                f"This version of lintra comes without published weights: `file` '{file}' is missing. Train and "
                "publish your own, and pass their file as `path` to `lintra.zoo.read`."
            )
        return Zoo(path)


def read(path: Path | None) -> Zoo:
    """The zoo of a file, or the published one if none is given."""
    return published() if path is None else Zoo(path)


def names() -> list[str]:
    """The names of all published models."""
    return list(published().cards)


def load(name: str) -> AbstractModel:
    """The published model of this name, such as `full-7-uniform(0,5)`."""
    forks.check_not_forked()
    return published().load(name)


def find(model: str) -> tuple[AbstractModel, str | None]:
    """A model by its file, its run folder or its published name, and the noise prior that it was trained on.

    The prior is None where it is not known.
    """
    if Path(model).exists():
        found, metadata = load_with_metadata(model)
        return found, metadata["noise"] or None
    if model.endswith(".safetensors") or "/" in model:
        raise FileNotFoundError(f"`model` '{model}' is not there.")
    return load(model), card(model)["noise"] or None


def card(name: str) -> Card:
    """What is known about the published model of this name."""
    return published().card(name)
