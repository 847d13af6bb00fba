"""The explorer page: the built page of the package, filled with the weights and figures of a zoo.

The page itself is built from `explorer/` and holds no weights. What it shows besides them, losses at every noise
level, is measured once for a zoo and kept in a file beside it.
"""

import base64
from importlib import resources
from typing import Any

import numpy as np

from lintra.evaluation import paper
from lintra.explorer.curves import Curves, shown
from lintra.runtime.escaping import json_in_page
from lintra.runtime.files import finite
from lintra.zoo.collection import Zoo

_PLACE = '<script type="application/json" id="lintra-data">null</script>'
_CARD = ("family", "layers", "heads", "context", "dim", "noise", "adjusted_loss", "standard_error", "worst")


def page(zoo: Zoo, curves: Curves) -> str:
    """The page as one self-contained file, filled with the models of a zoo."""
    built = resources.files("lintra").joinpath("data/explorer.html").read_text(encoding="utf-8")
    if built.count(_PLACE) != 1:
        raise ValueError("The built page has no place for its data. Build it anew: make page")
    filled = json_in_page(finite(data(zoo, curves)))
    return built.replace(_PLACE, _PLACE.replace("null", filled))


def data(zoo: Zoo, curves: Curves) -> dict[str, Any]:
    """What the page is filled with: models, Table 1 of the paper, and measured losses.

    Curves of models whose weights have changed since they were measured are left out.
    """
    models = {name: _model(zoo, name) for name in shown(zoo)}
    hashes = {name: zoo.card(name)["sha256"] for name in models}
    measured = {
        noise: kept
        | {
            "models": {
                name: curve for name, curve in kept["models"].items() if hashes.get(name) == curve["sha256"]
            }
        }
        for noise, kept in curves.items()
    }
    printed = [[*place, figure.value] for place, figure in paper.table1().items()]
    return {"models": models, "paper": printed, "noises": list(paper.NOISES), "curves": measured}


def _model(zoo: Zoo, name: str) -> dict[str, Any]:
    """What a card says, and the model's own numbers as little-endian bytes in base64."""
    own = {
        part: base64.b64encode(np.asarray(value, "<f8").tobytes()).decode()
        for part, value in zoo.load(name).parameters().items()
    }
    card = zoo.card(name)
    return {key: card.get(key) for key in _CARD} | {"parameters": own}
