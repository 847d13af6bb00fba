"""A zoo of untrained models, and results that are measured on it."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import pytest

from lintra import zoo
from lintra.baselines import TunedRidge
from lintra.evaluation.measurement import Results, measure_all
from lintra.models import FAMILIES, families
from lintra.problem.noise import AbstractDiscretePrior, AbstractNoisePrior


def untrained_model(family, num_layers, scale=0.02):
    return FAMILIES[family].random(num_layers, scale=scale, key=jax.random.fold_in(jax.random.key(0), num_layers))


def write_untrained_zoo(path):
    """Write the zoo of untrained models that tests of figures, the report and the zoo read."""
    sizes = {
        f"{family}-{num_layers}-{noise}": (family, num_layers)
        for family in families.PAPER_FAMILIES
        for num_layers in (1, 2)
        for noise in ("uniform(0,5)", "choice(1,3)")
    }
    sizes |= {
        f"{family}-{num_layers}-uniform(0,5)-seed{seed}": (family, num_layers)
        for family in ("diag", "full")
        for num_layers in (1, 3)
        for seed in range(2)
    }
    sizes["full-4-choice(1,3)"] = ("full", 4)
    card = {"seconds": 1.0, "noise": "fixed(1)"}
    zoo.write(path, {name: (untrained_model(*size), card) for name, size in sizes.items()})


@contextmanager
def quick_tuning() -> Iterator[None]:
    """TunedRR is tuned on 8,192 sequences, for tests that do not ask how well: its constants move by a percent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TunedRidge.tuned.__func__, "__kwdefaults__", {"num_sequences": 8192})
        yield


@contextmanager
def few_levels() -> Iterator[None]:
    """Five noise levels instead of 25 where losses are plotted against σ."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (AbstractNoisePrior, AbstractDiscretePrior):
            patch.setattr(kind, "grid", lambda self, whole=kind.grid: whole(self, 5))
        yield


class Measured(Results):
    """Results that are measured when they are asked for, each once."""

    def __init__(self, path):
        super().__init__({})
        self.zoo = zoo.Zoo(path)

    def __getitem__(self, need):
        if need not in self._values:
            with quick_tuning(), few_levels():
                self._values[need] = measure_all([need], self.zoo, num_sequences=8192)[need]
        return self._values[need]
