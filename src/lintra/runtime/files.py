"""Files written atomically, and JSON, in which NaN and infinity become null."""

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that at every moment it has either its old or its new content, intact."""
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


def json_safe(value: Any) -> Any:
    """Replace NaN and infinity by `None`, since JSON cannot represent them.

    >>> json_safe({"loss": float("inf"), "by_start": [1.0, float("nan")]})
    {'loss': None, 'by_start': [1.0, None]}
    """
    if isinstance(value, dict):
        return {name: json_safe(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """Return a value as JSON text, with `null` for NaN and infinity, and without spaces if `indent` is `None`.

    >>> to_json({"loss": float("nan"), "std": 1.0}, indent=None)
    '{"loss":null,"std":1.0}'
    """
    separators = (",", ":") if indent is None else None
    return json.dumps(json_safe(value), indent=indent, separators=separators, allow_nan=False)


def write_json(path: Path, content: Any) -> None:
    """Write a value as JSON, atomically, with `null` for NaN and infinity."""
    text = json.dumps(json_safe(content), indent=2, ensure_ascii=False, allow_nan=False)
    write_atomic(path, f"{text}\n".encode())


def append_jsonl(path: Path, content: Any) -> None:
    """Append a value as one line of JSON to a file, with `null` for NaN and infinity."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(json_safe(content), allow_nan=False) + "\n")
