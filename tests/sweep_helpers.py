"""Settings that tests of sweeps share."""

from typing import Any

SMALL: dict[str, Any] = {"families": ("gd++", "diag")}
