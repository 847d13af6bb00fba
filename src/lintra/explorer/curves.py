"""Losses at each noise level for the explorer, measured and stored beside a zoo."""

import json
import math
from pathlib import Path
from typing import Any

import jax
from jaxtyping import Array, Key

from lintra.arguments import KeyLike, random_key
from lintra.baselines import TABLE1_BASELINES, baseline
from lintra.baselines.tuned import TunedRidge
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.noise_profile import profile
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.files import json_safe, to_json, write_atomic
from lintra.runtime.progress import SILENT, Progress, track
from lintra.zoo.card import Card
from lintra.zoo.collection import Zoo

METHODS = ("ols", *TABLE1_BASELINES)
_MAX_CURVES = 2**26  # bytes of a file of curves; that of the published zoo has 0.15 MB

Curves = dict[str, Any]
"""By noise prior: noise levels, tuned constants, losses of baselines, and losses of models with their hashes."""


def measure(zoo: Zoo, *, num_sequences: int = 8192, key: KeyLike = 0, progress: Progress = SILENT) -> Curves:
    """Measure losses of models and baselines at every noise level, and of baselines on each prior.

    Args:
        zoo: The models.
        num_sequences: Number of sequences at each noise level; on a prior there are 25 times as many.
        key: Randomness, a whole number or a key.
        progress: Told after every noise prior.
    """
    by_noise: dict[str, list[str]] = {}
    for name in page_models(zoo):
        by_noise.setdefault(zoo.card(name)["noise"], []).append(name)
    noises = [noise for noise in paper.NOISES if noise in by_noise]
    return {
        noise: _measure_prior(zoo, noise, by_noise[noise], num_sequences, random_key(key))
        for noise in track(noises, progress, "noise priors")
    }


def curves_file(zoo_file: Path) -> Path:
    """Return the path of a zoo's curves, beside the zoo.

    >>> curves_file(Path("mine/zoo.safetensors")).name
    'zoo.curves.json'
    """
    return zoo_file.with_name(f"{zoo_file.stem}.curves.json")


def read_curves(zoo_file: Path) -> Curves:
    """Read the curves of a zoo; an empty dictionary where there are none.

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
    for noise, of_prior in _fields(curves).items():
        if noise not in paper.NOISES:
            raise ValueError(f"{noise!r:.99} is not a noise prior of Table 1.")
        num_levels, tuned = _numbers(of_prior["levels"]), _fields(of_prior["tuned"])
        _numbers([of_prior["sequences"], tuned["multiplier"], tuned["ceiling"]])
        for group, length in (("prior", 1), ("baselines", num_levels), ("models", num_levels)):
            for name, curve in _fields(of_prior[group]).items():
                if group != "models" and name not in METHODS:
                    raise ValueError(f"{name!r:.99} is not a baseline.")
                if {_numbers(curve["loss"], unknown=True), _numbers(curve["error"], unknown=True)} != {length}:
                    raise ValueError(f"{group} {name!r:.99} must have {length} losses and errors.")
                if _numbers(curve.get("median", curve["loss"]), unknown=True) != length:
                    raise ValueError(f"{group} {name!r:.99} must have {length} medians.")
                _flags(curve.get("dominated", [False] * length), length)
                if group == "models" and not isinstance(curve["sha256"], str):
                    raise ValueError(f"the hash of {name!r:.99} must be text.")


def _fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is needed, got {value!r:.99}.")
    return value


def _numbers(values: Any, *, unknown: bool = False) -> int:
    """Return how many numbers these are; all must be finite, or `None` where unknown ones may be."""
    for value in values if isinstance(values, list) else [values]:
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
        if not number and not (unknown and value is None):
            raise ValueError(f"a finite number is needed, got {value!r:.99}.")
    return len(values)


def _flags(values: Any, length: int) -> None:
    if not isinstance(values, list) or len(values) != length or not all(isinstance(v, bool) for v in values):
        raise ValueError(f"{length} times true or false are needed, got {values!r:.99}.")


def write_curves(zoo_file: Path, curves: Curves) -> None:
    """Write curves beside their zoo, a line for each noise prior."""
    lines = ",\n".join(f"{to_json(noise)}:{to_json(of_prior, indent=None)}" for noise, of_prior in curves.items())
    write_atomic(curves_file(zoo_file), f"{{\n{lines}\n}}\n".encode())


def _measure_prior(
    zoo: Zoo, noise: str, names: list[str], num_sequences: int, key: Key[Array, ""]
) -> dict[str, Any]:
    problem = NoisyRegression(noise=noise)
    tuning_key, profile_key, prior_key = jax.random.split(fold_in_words(key, "explorer", noise), 3)
    predictors = {name: baseline(name, problem, key=tuning_key) for name in METHODS}
    on_prior = evaluate(predictors, problem, num_sequences=25 * num_sequences, key=prior_key)
    noise_stds = problem.noise.grid()
    models = {name: zoo.load(name) for name in names}
    measured = profile(predictors | models, problem, noise_stds, num_sequences=num_sequences, key=profile_key)

    def curve(name: str) -> dict[str, Any]:
        tails = [comparison.tail(name) for comparison in measured]
        # Of few sequences the ten largest can have a tenth of the sum of an ordinary loss: some must explode, too.
        exploded = [comparison.num_exploded(name) > 0 for comparison in measured]
        return _rounded([comparison.adjusted(name) for comparison in measured]) | {
            "median": [json_safe(float(f"{tail.median:.4g}")) for tail in tails],
            "dominated": [tail.is_dominated and has for tail, has in zip(tails, exploded, strict=True)],
        }

    tuned = predictors["tuned-ridge"]
    assert isinstance(tuned, TunedRidge)
    return {
        "levels": noise_stds,
        "sequences": num_sequences,
        "tuned": {"multiplier": float(tuned.multiplier), "ceiling": float(tuned.ceiling)},
        "prior": {name: _rounded([on_prior.adjusted(name)]) for name in METHODS},
        "baselines": {name: curve(name) for name in METHODS},
        "models": {name: curve(name) | {"sha256": zoo.card(name)["sha256"]} for name in names},
    }


def _rounded(estimates: list[Estimate]) -> dict[str, list[float | None]]:
    """Means to four digits and standard errors to two, which is more than they are known to."""
    return {
        "loss": [json_safe(float(f"{estimate.mean:.4g}")) for estimate in estimates],
        "error": [json_safe(float(f"{estimate.standard_error:.2g}")) for estimate in estimates],
    }


def page_models(zoo: Zoo) -> list[str]:
    """Return the names of the models that the page offers: the best seed of every cell, at the size of Table 1."""

    def fits(card: Card) -> bool:
        is_default = (card["dim"], card["context"]) == (10, 20) and card["noise"] in paper.NOISES
        return is_default and (card["heads"] == 1 or card["family"] == "diag")  # elsewhere heads only add up

    return [name for name, card in zoo.cards.items() if "-seed" not in name and fits(card)]
