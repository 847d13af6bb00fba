"""Files written atomically, and JSON without NaN and infinity."""

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any


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


def finite(value: Any) -> Any:
    """A value for JSON, which has no word for what is not finite: there it becomes nothing.

    >>> finite({"loss": float("inf"), "by_start": [1.0, float("nan")]})
    {'loss': None, 'by_start': [1.0, None]}
    """
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON aside and rename it."""
    write_aside(path, (json.dumps(finite(content), indent=2, ensure_ascii=False) + "\n").encode())
