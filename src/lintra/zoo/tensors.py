"""Named arrays and text in a safetensors file, with a checksum, checked before memory is requested."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as format_tensors

from lintra.runtime.files import write_atomic

MAX_HEADER = 2**24  # bytes; the published zoo of 344 models has a header of 0.3 MB
MAX_FILE = 2**32  # bytes; the published zoo has 1.4 MB, and reading needs twice the file's size in memory
_WIDTHS = {  # bytes of one number
    **{"F64": 8, "F32": 4, "F16": 2, "BOOL": 1},
    **{"I64": 8, "I32": 4, "I16": 2, "I8": 1},
    **{"U64": 8, "U32": 4, "U16": 2, "U8": 1},
}


def write_tensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write named arrays and text, with a checksum over both, aside and renamed."""
    content = _in_order(format_tensors(tensors, metadata | {"sha256": digest(tensors, metadata)}))
    check_size(len(content), int.from_bytes(content[:8], "little"))
    write_atomic(path, content)


def read_tensors(path: Path, expected_format: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read named arrays and text back.

    Raises:
        ValueError: If the file was cut or altered, is of another format, or declares more than it holds.
    """
    tensors, metadata = read(path)
    if metadata.get("format") != expected_format:
        kind = metadata.get("format")
        raise ValueError(f"`path` '{path}' is not a {expected_format} file: its format is {kind!r:.99}.")
    if metadata.pop("sha256", None) != digest(tensors, metadata):
        raise ValueError(f"`path` '{path}' was altered: its content does not match the checksum written with it.")
    return tensors, metadata


def _in_order(content: bytes) -> bytes:
    """The same file with the keys of its header sorted: the same content always makes the same bytes."""
    length = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + length]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def digest(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    """A hash of named arrays and text."""
    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        value = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {value.dtype} {value.shape} ".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read the arrays and the text of a file.

    Raises:
        ValueError: If the file is not an intact safetensors file, or if it is too large.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"`path` '{path}' is not a file.")
    try:
        content, header = _read_file(path)
        return parse_tensors(content), _text(header)
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise ValueError(f"`path` '{path}' is not an intact safetensors file: {error}") from None


def check_size(size: int, header: int) -> None:
    """Reject a file that is too large, or whose header is too long or longer than the file."""
    if size > MAX_FILE:
        raise ValueError(f"it has {size:,} bytes, and at most {MAX_FILE:,} are read.")
    if header > min(size - 8, MAX_HEADER):
        raise ValueError(
            f"it declares a header of {header:,} bytes, of {size - 8:,} in the file and {MAX_HEADER:,} at most."
        )


def _read_file(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The content of the file, and its header after all sizes were compared with the size of the file."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        if len(start) < 8:
            raise ValueError(f"it has {size} bytes, and the length of a header takes 8.")
        length = int.from_bytes(start, "little")
        check_size(size, length)
        text = file.read(length)
        header = json.loads(text.decode())
        if not isinstance(header, dict):
            raise ValueError(f"its header must be an object, got {type(header).__name__}.")
        for name, entry in header.items():
            if name != "__metadata__":
                _check_entry(name, entry, size - 8 - length)
        return start + text + file.read(size - 8 - length), header


def _check_entry(name: str, entry: Any, available: int) -> None:
    """Reject an array whose offsets in the file do not agree with its shape, or are outside of the file."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"array {name!r} must have dtype, shape and data_offsets, and no more.")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _WIDTHS:
        raise ValueError(f"array {name!r} must have a dtype of {', '.join(_WIDTHS)}, got {kind!r}.")
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError(
            f"array {name!r} must have a shape and two offsets, got {shape!r:.99} and {offsets!r:.99}."
        )
    if _WIDTHS[kind] * math.prod(shape) != offsets[1] - offsets[0] or offsets[1] > available:
        raise ValueError(
            f"array {name!r} of shape {tuple(shape)!s:.99} and dtype {kind} cannot have the bytes "
            f"{offsets[0]:,} to {offsets[1]:,} of {available:,}."
        )


def _are_counts(values: Any) -> bool:
    """Whether this is a short list of whole numbers that are not negative and fit in 64 bits."""
    return (
        isinstance(values, list)
        and len(values) <= 32  # axes, which is what NumPy allows
        and all(type(value) is int and 0 <= value < 2**63 for value in values)
    )


def _text(header: dict[str, Any]) -> dict[str, str]:
    """The free text of a header."""
    text = header.get("__metadata__", {})
    if not isinstance(text, dict) or not all(isinstance(value, str) for value in text.values()):
        raise ValueError("its metadata must be names and texts.")
    return text
