"""Published models by name, and any model by name, file or run folder."""

from functools import cache
from importlib import resources
from pathlib import Path

from lintra.models.base import AbstractModel
from lintra.runtime import forks
from lintra.zoo.card import Card
from lintra.zoo.collection import UnknownModelError, Zoo, write
from lintra.zoo.model_file import load_with_metadata

__all__ = ["Card", "UnknownModelError", "Zoo", "card", "find", "load", "names", "published", "read", "write"]


@cache
def published(file: str = "zoo.safetensors") -> Zoo:
    """The zoo that comes with lintra, or another of its files."""
    with resources.as_file(resources.files("lintra").joinpath("data", file)) as path:
        if not path.exists():
            raise FileNotFoundError(
                f"This version of lintra comes without published weights: `file` '{file}' is missing. Train and "
                "publish your own, and pass their file as `path` to `lintra.zoo.lookup.read`."
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
        loaded, metadata = load_with_metadata(model)
        return loaded, metadata["noise"] or None
    if model.endswith(".safetensors") or "/" in model:
        raise FileNotFoundError(f"`model` '{model}' is not there.")
    return load(model), card(model)["noise"] or None


def card(name: str) -> Card:
    """What is known about the published model of this name."""
    return published().card(name)
