"""The explorer page: the built page of the package, filled with the models and losses of a zoo.

The page itself is built from `explorer/` and holds no weights. What it shows besides them, losses at every noise
level, is measured once for a zoo and stored in a file beside it.
"""

import base64
from importlib import resources
from typing import Any

import numpy as np

from lintra.evaluation import paper
from lintra.explorer.curves import Curves, page_models
from lintra.runtime.escaping import json_in_page
from lintra.runtime.files import json_safe
from lintra.zoo.collection import Zoo

_EMPTY = '<script type="application/json" id="lintra-data">null</script>'
_CARD = (
    *("family", "layers", "heads", "context", "dim", "noise", "damping"),
    *("adjusted_loss", "standard_error", "median", "worst", "damped"),
    *("num_exploded", "printed_num_exploded", "gate_sequences"),
)


def page(zoo: Zoo, curves: Curves) -> str:
    """The page as one self-contained file, filled with the models of a zoo."""
    built = resources.files("lintra").joinpath("data/explorer.html").read_text(encoding="utf-8")
    if built.count(_EMPTY) != 1:
        raise ValueError("The built page has no place for its data. Build it anew: make page")
    filled = json_in_page(json_safe(data(zoo, curves)))
    return built.replace(_EMPTY, _EMPTY.replace("null", filled))


def data(zoo: Zoo, curves: Curves) -> dict[str, Any]:
    """What the page is filled with: models, Table 1 of the paper, and measured losses.

    Curves of models whose weights have changed since they were measured are left out.
    """
    models = {name: _model(zoo, name) for name in page_models(zoo)}
    hashes = {name: zoo.card(name)["sha256"] for name in models}
    measured = {
        noise: of_prior
        | {
            "models": {
                name: curve for name, curve in of_prior["models"].items() if hashes.get(name) == curve["sha256"]
            }
        }
        for noise, of_prior in curves.items()
    }
    printed = [[*cell, loss.value] for cell, loss in paper.printed_table1().items()]
    return {"models": models, "paper": printed, "noises": list(paper.NOISES), "curves": measured}


def _model(zoo: Zoo, name: str) -> dict[str, Any]:
    """Return what the page needs of a card, and the model's parameters as little-endian bytes in base64."""
    parameters = {
        part: base64.b64encode(np.asarray(value, "<f8").tobytes()).decode()
        for part, value in zoo.load(name).parameters().items()
    }
    card = zoo.card(name)
    return {key: card.get(key) for key in _CARD} | {"parameters": parameters}
