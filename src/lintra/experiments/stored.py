"""Results of experiments in files: settings, versions, and the rows of every part."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lintra.display import Row
from lintra.runtime.files import to_json, write_atomic

_FORMAT = "lintra-experiment-1"
_FOLDER = Path(__file__).parent.parent / "data"


@dataclass(frozen=True)
class StoredPart:
    """The rows of one part, and how long it took.

    Attributes:
        seconds: Duration in seconds, on the machine that it ran on.
        rows: The rows.
    """

    seconds: float
    rows: list[Row]


@dataclass(frozen=True)
class StoredExperiment:
    """What an experiment has given.

    Attributes:
        name: Its name.
        settings: Everything that the rows depend on.
        versions: Versions of the software.
        parts: Parts by name.
    """

    name: str
    settings: dict[str, Any]
    versions: dict[str, str]
    parts: dict[str, StoredPart] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """The rows of all parts."""
        return [row for part in self.parts.values() for row in part.rows]

    def plain_settings(self) -> dict[str, Any]:
        """The settings as JSON has them: tuples are lists."""
        return json.loads(json.dumps(self.settings))

    def write(self, path: Path) -> None:
        """Write it atomically as JSON, with `null` for NaN and infinity."""
        content = {"format": _FORMAT} | asdict(self)
        write_atomic(path, f"{to_json(_rounded(content), indent=None)}\n".encode())

    @classmethod
    def read(cls, path: Path) -> "StoredExperiment":
        """Read a file.

        Raises:
            FileNotFoundError: If there is none.
            ValueError: If it is no stored experiment.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != _FORMAT:
                raise ValueError("another format")
            parts = {name: StoredPart(**part) for name, part in content.pop("parts").items()}
            return cls(**content, parts=parts)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"`path` '{path}' is no stored experiment: {error}.") from None


def _rounded(value: Any) -> Any:
    """Numbers to eight digits, which is far below their standard errors and halves the file."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def stored_path(name: str) -> Path:
    """The file of an experiment that is published with lintra.

    >>> stored_path("equation-8").name
    'experiment-equation-8.json'
    """
    return _FOLDER / f"experiment-{name}.json"


def stored_rows(name: str) -> list[Row]:
    """The rows of an experiment that is published with lintra.

    Raises:
        FileNotFoundError: If it is not published.
    """
    path = stored_path(name)
    if not path.exists():
        raise FileNotFoundError(f"No experiment {name} is stored in '{path}'. Run it: lintra experiment {name}")
    return StoredExperiment.read(path).rows
