"""Losses at each noise level for the explorer, measured and kept beside a zoo."""

import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from lintra.baselines import BASELINES, baseline
from lintra.baselines.tuned import TunedRidge
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.noise_profile import profile
from lintra.problem.noise import noise_levels
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.files import finite, write_aside
from lintra.runtime.progress import Track
from lintra.zoo.card import Card
from lintra.zoo.collection import Zoo

METHODS = tuple(name for name in BASELINES if name != "iterative-ridge")
_MAX_CURVES = 2**26  # bytes of a file of curves; that of the published zoo has 0.15 MB

Curves = dict[str, Any]
"""By noise prior: noise levels, tuned constants, losses of baselines, and losses of models with their hashes."""


def measure(
    zoo: Zoo, *, num_sequences: int = 8192, seed: int = 0, track: Callable[[str], Track] | None = None
) -> Curves:
    """Losses of models and baselines at every noise level, and of baselines on each prior."""
    by_noise: dict[str, list[str]] = {}
    for name in shown(zoo):
        by_noise.setdefault(zoo.card(name)["noise"], []).append(name)
    return {
        noise: _measure_prior(zoo, noise, by_noise[noise], num_sequences, seed, track)
        for noise in paper.NOISES
        if noise in by_noise
    }


def curves_file(zoo_file: Path) -> Path:
    """Where the curves of a zoo are kept: beside it.

    >>> curves_file(Path("mine/zoo.safetensors")).name
    'zoo.curves.json'
    """
    return zoo_file.with_name(f"{zoo_file.stem}.curves.json")


def read_curves(zoo_file: Path) -> Curves:
    """The curves that were measured for a zoo; none where they have not been.

    Raises:
        ValueError: If the file is too large, or holds what curves cannot have.
    """
    path = curves_file(zoo_file)
    if not path.exists():
        return {}
    with path.open("rb") as file:
        content = file.read(_MAX_CURVES + 1)
    try:
        if len(content) > _MAX_CURVES:
            raise ValueError(f"it has more than {_MAX_CURVES:,} bytes.")
        curves = json.loads(content)
        _check_curves(curves)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"'{path}' does not hold the curves of a zoo: {error!s:.200} Remove it, or measure them anew."
        ) from None
    return curves


def _check_curves(curves: Any) -> None:
    """Reject curves that are not as `measure` makes them. Names of models are compared with the zoo later."""
    for noise, kept in _fields(curves).items():
        if noise not in paper.NOISES:
            raise ValueError(f"{noise!r:.99} is not a noise prior of Table 1.")
        levels, tuned = _numbers(kept["levels"]), _fields(kept["tuned"])
        _numbers([kept["sequences"], tuned["multiplier"], tuned["ceiling"]])
        for group, length in (("prior", 1), ("baselines", levels), ("models", levels)):
            for name, curve in _fields(kept[group]).items():
                if group != "models" and name not in METHODS:
                    raise ValueError(f"{name!r:.99} is not a baseline.")
                if {_numbers(curve["loss"], unknown=True), _numbers(curve["error"], unknown=True)} != {length}:
                    raise ValueError(f"{group} {name!r:.99} must have {length} losses and errors.")
                if group == "models" and not isinstance(curve["sha256"], str):
                    raise ValueError(f"the hash of {name!r:.99} must be text.")


def _fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is needed, got {value!r:.99}.")
    return value


def _numbers(values: Any, *, unknown: bool = False) -> int:
    """How many numbers these are, all finite, or None where unknown ones may be."""
    for value in values if isinstance(values, list) else [values]:
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
        if not number and not (unknown and value is None):
            raise ValueError(f"a finite number is needed, got {value!r:.99}.")
    return len(values)


def write_curves(zoo_file: Path, curves: Curves) -> None:
    """Keep curves beside their zoo."""
    lines = ",\n".join(
        f"{json.dumps(noise)}:{json.dumps(kept, separators=(',', ':'))}" for noise, kept in curves.items()
    )
    write_aside(curves_file(zoo_file), f"{{\n{lines}\n}}\n".encode())


def _measure_prior(
    zoo: Zoo, noise: str, names: list[str], num_sequences: int, seed: int, track: Callable[[str], Track] | None
) -> dict[str, Any]:
    problem = NoisyRegression(noise=noise)
    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(f"explorer {noise}".encode()))
    tuning_key, profile_key, prior_key = jax.random.split(key, 3)
    predictors = {name: baseline(name, problem, key=tuning_key) for name in METHODS}
    shown_by = None if track is None else track(f"curves, {noise}")
    on_prior = evaluate(predictors, problem, num_sequences=25 * num_sequences, key=prior_key)
    levels = noise_levels(noise)
    models = {name: zoo.load(name) for name in names}
    measured = profile(
        predictors | models, problem, levels, num_sequences=num_sequences, key=profile_key, track=shown_by
    )

    def curve(name: str) -> dict[str, list[float | None]]:
        return _rounded([comparison.adjusted(name) for comparison in measured])

    tuned = predictors["tuned-ridge"]
    assert isinstance(tuned, TunedRidge)
    return {
        "levels": levels,
        "sequences": num_sequences,
        "tuned": {"multiplier": float(tuned.multiplier), "ceiling": float(tuned.ceiling)},
        "prior": {name: _rounded([on_prior.adjusted(name)]) for name in METHODS},
        "baselines": {name: curve(name) for name in METHODS},
        "models": {name: curve(name) | {"sha256": zoo.card(name)["sha256"]} for name in names},
    }


def _rounded(estimates: list[Estimate]) -> dict[str, list[float | None]]:
    """Means to four digits and standard errors to two, which is more than they are known to."""
    return {
        "loss": [finite(float(f"{estimate.mean:.4g}")) for estimate in estimates],
        "error": [finite(float(f"{estimate.standard_error:.2g}")) for estimate in estimates],
    }


def shown(zoo: Zoo) -> list[str]:
    """The names of the models that the page offers: the best seed of every cell, at the size of Table 1."""

    def fits(card: Card) -> bool:
        usual = (card["dim"], card["context"]) == (10, 20) and card["noise"] in paper.NOISES
        return usual and (card["heads"] == 1 or card["family"] == "diag")  # elsewhere heads only add up

    return [name for name, card in zoo.cards.items() if "-seed" not in name and fits(card)]
