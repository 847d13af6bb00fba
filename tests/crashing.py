"""Recipes that fail, for processes that cannot be patched from outside."""

import os
import signal
from dataclasses import dataclass

from lintra.training import Fast
from lintra.training.warm_starts import NO_WARM_STARTS


@dataclass(frozen=True)
class Raises(Fast):
    """Raises at DIAG with two layers."""

    def stages(self, spec, key, warm_starts=NO_WARM_STARTS):
        if (spec.family, spec.num_layers) == ("diag", 2):
            raise RuntimeError("this cell fails")
        return super().stages(spec, key, warm_starts)


@dataclass(frozen=True)
class KillsItsProcess(Fast):
    """Kills its process at DIAG with one layer."""

    def stages(self, spec, key, warm_starts=NO_WARM_STARTS):
        if spec.family == "diag":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().stages(spec, key, warm_starts)
