"""Model files: one safetensors file with P and Q as printed, the family's own numbers, and metadata."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as format_tensors

from lintra._version import __version__
from lintra.losses import finite
from lintra.models import FAMILIES, AbstractModel
from lintra.noise import parse_noise

_FORMAT = "lintra-model-1"


def save(
    model: AbstractModel,
    path: str | os.PathLike,
    *,
    noise: str | None = None,
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a file, aside and renamed, so that an older file is whole until the new one is.

    Arguments:
        model: The model.
        path: Where to write; by custom the name ends in `.safetensors`.
        noise: The noise prior it was trained on, kept as metadata.
        card: More to keep as metadata, as JSON.
    """
    if type(model) not in FAMILIES.values():
        raise ValueError(f"`model` must be of a family of lintra, got {type(model).__name__}.")
    P, Q = model.matrices()
    own = {f"own.{name}": np.asarray(value) for name, value in model.parameters().items()}
    tensors = {"P": P, "Q": Q} | own
    metadata = {
        "format": _FORMAT,
        "family": model.family,
        "layers": str(model.num_layers),
        "heads": str(model.num_heads),
        "dim": str(model.dim),
        "context": str(model.context),
        "noise": "" if noise is None else str(parse_noise(noise)),
        "scale": "own numbers are for a Gram matrix divided by context",
        "version": __version__,
        "card": json.dumps(finite(card or {}), sort_keys=True),
    }
    write_tensors(Path(path), tensors, metadata)


def load(path: str | os.PathLike) -> AbstractModel:
    """Read a model back, bit for bit; a file that was cut or altered is refused."""
    return load_with_metadata(path)[0]


def load_with_metadata(path: str | os.PathLike) -> tuple[AbstractModel, dict[str, str]]:
    """Read a model and its metadata: family, layers, heads, dim, context, noise, version and more."""
    tensors, metadata = read_tensors(Path(path), _FORMAT)
    own = {name.removeprefix("own."): value for name, value in tensors.items() if name.startswith("own.")}
    if not jax.config.jax_enable_x64 and any(value.dtype == np.float64 for value in own.values()):  # pyright: ignore[reportAttributeAccessIssue]
        raise ValueError(f"`path` '{path}' holds 64-bit numbers, but JAX_ENABLE_X64 turns 64 bits off.")
    try:
        family = FAMILIES[metadata["family"]]
        return family.from_parameters(own, int(metadata["context"]), int(metadata["dim"])), metadata
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"`path` '{path}' is not a model that lintra can read: {error}") from None


def read_metadata(path: str | os.PathLike) -> dict[str, str]:
    """The metadata of a model file: family, layers, heads, dim, context, noise, version and more."""
    return read_tensors(Path(path), _FORMAT)[1]


def write_tensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write named arrays and text, with a checksum over both, aside and renamed."""
    content = format_tensors(tensors, metadata | {"sha256": digest(tensors, metadata)})
    write_aside(path, _in_order(content))


def read_tensors(path: Path, expected_format: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read named arrays and text back; a file that was cut or altered, or is of another format, is refused."""
    content = path.read_bytes()
    try:
        tensors = parse_tensors(content)
        metadata = _metadata(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"`path` '{path}' is not a whole safetensors file: {error}") from None
    if metadata.get("format") != expected_format:
        kind = metadata.get("format")
        raise ValueError(f"`path` '{path}' is not a {expected_format} file: its format is {kind!r}.")
    if metadata.pop("sha256", None) != digest(tensors, metadata):
        raise ValueError(f"`path` '{path}' was altered: its content does not match the checksum written with it.")
    return tensors, metadata


def write_aside(path: Path, content: bytes) -> None:
    """Write a file so that at every moment either the old or the new content is there, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _in_order(content: bytes) -> bytes:
    """The same file with the keys of its header sorted: the same content always makes the same bytes."""
    length = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + length]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def _metadata(content: bytes) -> dict[str, str]:
    """The free-text part of a safetensors header, which is JSON behind its length in eight bytes."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]).get("__metadata__") or {}


def digest(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    """A hash of named arrays and text."""
    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        value = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {value.dtype} {value.shape} ".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
