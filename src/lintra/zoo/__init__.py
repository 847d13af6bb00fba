"""Models in files: one model, or many with their cards."""

from lintra.zoo.card import Card
from lintra.zoo.collection import UnknownModelError, Zoo, write
from lintra.zoo.lookup import card, find, load, names, published, read

__all__ = [
    "Card",
    "UnknownModelError",
    "Zoo",
    "card",
    "find",
    "load",
    "names",
    "published",
    "read",
    "write",
]
