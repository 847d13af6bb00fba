"""Model files: one safetensors file with P and Q as printed, the family's own numbers, and metadata."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as format_tensors

from lintra._version import __version__
from lintra.models import FAMILIES, AbstractModel, Diagonal, Full, GDPlusPlus
from lintra.noise import parse_noise

_FORMAT = "lintra-model-1"


def save(model: AbstractModel, path: str | os.PathLike, *, noise: str | None = None) -> None:
    """Write a model to a file, aside and renamed, so that an older file is whole until the new one is.

    Arguments:
        model: The model.
        path: Where to write; by custom the name ends in `.safetensors`.
        noise: The noise prior it was trained on, kept as metadata.
    """
    if type(model) not in FAMILIES.values():
        raise ValueError(f"`model` must be of a family of lintra, got {type(model).__name__}.")
    P, Q = model.matrices()
    tensors = {"P": P, "Q": Q} | {f"own.{name}": np.asarray(value) for name, value in _own(model).items()}
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
        "sha256": _digest(tensors),
    }
    write_aside(Path(path), format_tensors(tensors, metadata))


def load(path: str | os.PathLike) -> AbstractModel:
    """Read a model back, bit for bit; a file that was cut or altered is refused."""
    tensors, metadata = _read(Path(path))
    own = {
        name.removeprefix("own."): jnp.asarray(value) for name, value in tensors.items() if name.startswith("own.")
    }
    try:
        return _build(metadata["family"], own, int(metadata["context"]), int(metadata["dim"]))
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"`path` {os.fspath(path)!r} is not a model that lintra can read: {error}") from None


def read_metadata(path: str | os.PathLike) -> dict[str, str]:
    """The metadata of a model file: family, layers, heads, dim, context, noise, version and more."""
    return _read(Path(path))[1]


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


def _own(model: AbstractModel) -> dict[str, Array]:
    if isinstance(model, GDPlusPlus):
        return {"omega": model.omega}
    assert isinstance(model, Full | Diagonal)
    return {"p": model.p, "q": model.q}


def _build(family: str, own: dict[str, Array], context: int, dim: int) -> AbstractModel:
    if family == GDPlusPlus.family:
        return GDPlusPlus(own["omega"], context, dim)
    if family == Diagonal.family:
        return Diagonal(own["p"], own["q"], context, dim)
    if family == Full.family:
        return Full(own["p"], own["q"], context)
    raise ValueError(f"unknown family {family!r}.")


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    content = path.read_bytes()
    try:
        tensors = parse_tensors(content)
        metadata = _metadata(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"`path` '{path}' is not a whole safetensors file: {error}") from None
    if metadata.get("format") != _FORMAT:
        raise ValueError(f"`path` '{path}' is not a lintra model file: its format is {metadata.get('format')!r}.")
    if metadata.get("sha256") != _digest(tensors):
        raise ValueError(f"`path` '{path}' was altered: its numbers do not match the checksum written with them.")
    return tensors, metadata


def _metadata(content: bytes) -> dict[str, str]:
    """The free-text part of a safetensors header, which is JSON behind its length in eight bytes."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]).get("__metadata__", {})


def _digest(tensors: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {value.dtype} {value.shape} ".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
