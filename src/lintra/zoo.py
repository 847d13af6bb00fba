"""Published weights by name, each with a card that says what it is, how it was made and how good it is."""

import difflib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from lintra.losses import finite
from lintra.models import FAMILIES, AbstractModel
from lintra.storage import digest, load_with_metadata, read_tensors, write_tensors

_FORMAT = "lintra-zoo-1"

Card = dict[str, Any]
"""Family, layers, heads, context, dim, noise, recipe, seeds, seconds, adjusted loss, tail, hash."""


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
        self.cards: dict[str, Card] = json.loads(metadata["cards"])

    def load(self, name: str) -> AbstractModel:
        """The model of this name, after a look at its hash."""
        card, start = self.card(name), f"{name}/"
        own = {part.removeprefix(start): value for part, value in self._tensors.items() if part.startswith(start)}
        if digest(own, {}) != card["sha256"]:
            raise ValueError(f"The weights of {name!r} do not match the hash on their card.")
        return FAMILIES[card["family"]].from_parameters(own, card["context"], card["dim"])

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
        cards[name] = known | more | {"sha256": digest(own, {})}
    write_tensors(path, tensors, {"format": _FORMAT, "cards": json.dumps(finite(cards), sort_keys=True)})


@cache
def published(file: str = "zoo.safetensors") -> Zoo:
    """The zoo that comes with lintra, or another of its files."""
    with resources.as_file(resources.files("lintra").joinpath("data", file)) as path:
        if not path.exists():
            raise ValueError(
                "This version of lintra comes without published weights. Train and publish your own with "
                "`lintra sweep` and `lintra publish`, and say where they are with `--zoo`."
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
    return published().load(name)


def find(model: str) -> tuple[AbstractModel, str | None]:
    """A model by its file or its published name, and the noise prior that it was trained on, if that is known."""
    if Path(model).is_file():
        found, metadata = load_with_metadata(model)
        return found, metadata["noise"] or None
    if model.endswith(".safetensors") or "/" in model:
        raise ValueError(f"`model` '{model}' is not there.")
    return load(model), card(model)["noise"]


def card(name: str) -> Card:
    """What is known about the published model of this name."""
    return published().card(name)
