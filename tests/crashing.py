"""Recipes that fail, for processes that cannot be patched from outside."""

import os
import signal
from dataclasses import dataclass

from lintra.training import Fast


@dataclass(frozen=True)
class Crashing(Fast):
    """Raises at DIAG with two layers."""

    def stages(self, task, key, known=()):
        if (task.variant, task.layers) == ("diag", 2):
            raise RuntimeError("no such luck")
        return super().stages(task, key, known)


@dataclass(frozen=True)
class Deadly(Fast):
    """Kills its process at DIAG with one layer."""

    def stages(self, task, key, known=()):
        if task.variant == "diag":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().stages(task, key, known)
