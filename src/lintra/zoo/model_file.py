"""Model files: one safetensors file with P and Q as printed, the family's parameters, and metadata.

The checksum in a file detects accidents. It does not detect attackers, who can compute it anew. So all that a file
says is validated on load, whatever its checksum is.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lintra import arguments
from lintra._version import __version__
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.models.damping import Damping
from lintra.models.families import FAMILIES
from lintra.problem.noise import parse_noise
from lintra.runtime.files import json_safe
from lintra.zoo.tensors import read_tensors, write_tensors

_FORMAT = "lintra-model-1"
_MODEL = "model.safetensors"  # the trained model in a run folder
LIMITS = {
    "layers": 1000,  # the deepest published model has 12
    "heads": 1000,
    "dim": 10_000,  # one Gram matrix in float64 then takes 0.8 GB
    "context": 10**12,  # float64 counts exactly up to 9e15
}
"""The largest sizes of models in files."""
_TEXTS = {"scale": 200, "version": 100, "noise": 10_000, "card": 2**20}  # the most characters of each
_TOLERANCE = 4  # units of rounding by which P and Q may differ from what the parameters give


def save(
    model: AbstractModel,
    path: str | os.PathLike,
    *,
    noise: str | None = None,
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a file, aside and renamed, so that an older file stays intact until the new one is.

    Arguments:
        model: The model.
        path: Where to write; by custom the name ends in `.safetensors`.
        noise: The noise prior it was trained on, kept as metadata.
        card: More to keep as metadata, as JSON.
    """
    if FAMILIES.get(getattr(model, "family", "")) is not type(model):
        raise ValueError(f"`model` must be of a family of lintra, got {type(model).__name__}.")
    check_sizes(
        {"layers": model.num_layers, "heads": model.num_heads, "dim": model.dim, "context": model.num_examples}
    )
    P, Q = model.matrices()
    parameters = {f"own.{name}": np.asarray(value) for name, value in model.parameters().items()}
    tensors = {"P": P, "Q": Q} | parameters
    metadata = {
        "format": _FORMAT,
        "family": model.family,
        "layers": str(model.num_layers),
        "heads": str(model.num_heads),
        "dim": str(model.dim),
        "context": str(model.num_examples),
        "noise": "" if noise is None else str(parse_noise(noise)),
        "scale": "own numbers are for a Gram matrix divided by context",
        "version": __version__,
        "card": json.dumps(json_safe(card or {}), sort_keys=True),
    }
    if (damping := damping_record(model)) is not None:
        metadata["damping"] = json.dumps(damping, sort_keys=True)
    write_tensors(Path(path), tensors, metadata)


def load(path: str | os.PathLike) -> AbstractModel:
    """Read a model back, bit for bit.

    Arguments:
        path: A model file, or a run folder that holds a trained model.

    Raises:
        FileNotFoundError: If there is no such file, or if a run folder holds no trained model.
        ValueError: If the file was cut or altered, or if it holds what no model can have.
    """
    return load_with_metadata(path)[0]


def load_with_metadata(path: str | os.PathLike) -> tuple[AbstractModel, dict[str, str]]:
    """Read a model and its metadata: family, layers, heads, dim, context, noise, version and more."""
    file = model_file(path)
    tensors, metadata = _read(file)
    parameters = {name.removeprefix("own."): value for name, value in tensors.items() if name.startswith("own.")}
    try:
        with in_64_bits():
            model = FAMILIES[metadata["family"]].from_parameters(
                parameters, int(metadata["context"]), int(metadata["dim"])
            )
            check_model(model, metadata)
            model = with_record(model, json.loads(metadata["damping"]) if "damping" in metadata else None)
            for name, matrix in zip("PQ", model.matrices(), strict=True):
                _check_matrix(name, tensors[name], matrix)
    except ValueError as error:
        raise ValueError(f"`path` '{file}' is not a model that lintra can read: {error}") from None
    return model, metadata


def read_metadata(path: str | os.PathLike) -> dict[str, str]:
    """The metadata of a model file: family, layers, heads, dim, context, noise, version and more."""
    return _read(model_file(path))[1]


def model_file(path: str | os.PathLike) -> Path:
    """The file of a model: the path itself, or the trained model in a run folder."""
    path = Path(path)
    if not path.is_dir() or (path / _MODEL).is_file():
        return path / _MODEL if path.is_dir() else path
    if (path / "settings.json").exists():
        raise FileNotFoundError(f"`path` '{path}' is a run that is not finished: train it to its end first.")
    raise FileNotFoundError(f"`path` '{path}' is a folder that holds no trained model, '{_MODEL}'.")


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and validated metadata of a model file."""
    tensors, metadata = read_tensors(path, _FORMAT)
    try:
        return tensors, _validated(tensors, metadata)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"`path` '{path}' is not a model that lintra can read: {error}") from None


def _validated(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata whose sizes are those of the arrays, and whose prior is printed from the parsed value."""
    missing = [name for name in ("family", *LIMITS, *_TEXTS) if name not in metadata]
    if missing:
        raise ValueError(f"its metadata lack {', '.join(missing)}.")
    family = FAMILIES[arguments.one_of("family", metadata["family"], FAMILIES)]
    expected = {"P", "Q"} | {f"own.{name}" for name in family.parameter_names()}
    if set(tensors) != expected:
        raise ValueError(f"it must hold the arrays {sorted(expected)}, got {sorted(tensors)!s:.200}.")
    for name, value in tensors.items():
        check_numbers(name, value)
    for name, longest in _TEXTS.items():
        text = metadata[name]
        if len(text) > longest or not text.isprintable():
            raise ValueError(f"`{name}` must be {longest} printable characters or less, got {text!r:.99}.")
    layers, heads, dim, _ = check_sizes({name: _count(name, metadata[name]) for name in LIMITS})
    shape = (layers, heads, dim + 1, dim + 1)
    for name in ("P", "Q"):
        if tensors[name].shape != shape:
            raise ValueError(f"`{name}` must have shape {shape}, got {tensors[name].shape}.")
    if not isinstance(json.loads(metadata["card"]), dict):
        raise ValueError(f"`card` must be a JSON object, got {metadata['card']!r:.99}.")
    checked = {name: metadata[name] for name in ("format", "family", *LIMITS, *_TEXTS)}
    if "damping" in metadata:
        checked["damping"] = metadata["damping"]
        if len(checked["damping"]) > _TEXTS["card"]:
            raise ValueError(f"`damping` must be {_TEXTS['card']} characters or less.")
        check_record(json.loads(checked["damping"]), layers)
    return checked | {"noise": printed_noise(metadata["noise"])}


def damping_record(model: AbstractModel) -> dict[str, Any] | None:
    """The damping of a model as files and cards hold it, and whether it is `active`. `None`: it has none."""
    damping = model.damping or model.stored_damping
    return None if damping is None else damping.to_json() | {"active": model.damping is not None}


def check_record(record: Any, num_layers: int) -> Damping:
    """Return the thresholds of a record, or reject it."""
    if isinstance(record, dict) and not isinstance(record.get("active"), bool):
        raise ValueError(f"`active` must be true or false, got {record.get('active')!r:.99}.")
    return Damping.from_json(record, num_layers)


def with_record(model: AbstractModel, record: Any) -> AbstractModel:
    """The model with the damping of a file or card."""
    if record is None:
        return model
    model = model.store_damping(check_record(record, model.num_layers))
    return model.with_damping() if record["active"] else model


def _count(name: str, text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,18}", text):
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {text!r:.99}.")
    return int(text)


def printed_noise(text: str) -> str:
    """A prior as lintra prints it; empty stands for an unknown one."""
    return str(parse_noise(text)) if text else ""


def check_sizes(sizes: Mapping[str, int]) -> list[int]:
    """Return layers, heads, inputs and context length, or reject those that no file may have."""
    for name, largest in LIMITS.items():
        if not 1 <= sizes[name] <= largest:
            raise ValueError(f"`{name}` must be from 1 to {largest:,} in a file, got {sizes[name]:,}.")
    return [sizes[name] for name in LIMITS]


def check_numbers(name: str, value: np.ndarray) -> None:
    """Reject an array that does not hold finite numbers in 32 or 64 bits."""
    if value.dtype not in (np.float32, np.float64):
        raise ValueError(f"`{name}` must hold numbers of type float32 or float64, got {value.dtype}.")
    if not np.isfinite(value).all():
        raise ValueError(f"`{name}` must be finite, got NaN or infinity.")


def check_model(model: AbstractModel, sizes: Mapping[str, Any]) -> None:
    """Reject a model whose sizes are not the ones that were written down."""
    sizes_of_model = {
        "layers": model.num_layers,
        "heads": model.num_heads,
        "dim": model.dim,
        "context": model.num_examples,
    }
    for name, size in sizes_of_model.items():
        if int(sizes[name]) != size:
            raise ValueError(f"`{name}` must be {size} for these arrays, got {sizes[name]}.")


def _check_matrix(name: str, stored: np.ndarray, expected: np.ndarray) -> None:
    """Reject P or Q that is not what the parameters give, to rounding."""
    limits = np.finfo(stored.dtype if stored.dtype.itemsize < expected.dtype.itemsize else expected.dtype)
    # A few units of rounding in each entry; numbers below the smallest normal one may have become zero.
    allowed = _TOLERANCE * limits.eps * np.abs(expected) + limits.tiny
    wrong = int((np.abs(stored - expected) > allowed).sum())
    if wrong:
        raise ValueError(
            f"{wrong} of {stored.size} entries of `{name}` are not what the family's parameters give (to "
            f"{_TOLERANCE * limits.eps:.1g}, relative)."
        )
