"""The loss after each layer, of models of several seeds."""

from dataclasses import dataclass
from typing import Any

from lintra.arguments import KeyLike, random_key
from lintra.baselines.bayes import Bayes
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.evaluation.noise_profile import SEQUENCES_PER_LEVEL
from lintra.models.families import PAPER_FAMILIES
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress, track
from lintra.zoo.collection import UnknownModelError, Zoo

SEEDED = "uniform(0,5)"
"""The noise prior at which models of several seeds are published."""

_NUM_SEEDS = 5


@dataclass(frozen=True)
class Layers(AbstractMeasurement[list[Row]]):
    """The loss after every layer of every seed's models, and that of the Bayes predictor, on given priors.

    Models and Bayes predictor have the prior `SEEDED`.

    Attributes:
        noises: The noise priors of the sequences.
        depths: Numbers of layers of the models.
    """

    noises: tuple[str, ...]
    depths: range

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure the models that are in the zoo, on one block of sequences for each prior."""
        del num_sequences  # one block of sequences at each prior
        names = {
            name: (family, depth, seed)
            for family in PAPER_FAMILIES
            for depth in self.depths
            for seed, name in seed_names(zoo, family, depth).items()
        }
        if not names:
            raise UnknownModelError(f"There are no models of several seeds at {SEEDED} in the zoo.")
        predictors: dict[str, Any] = {name: zoo.load(name) for name in names}
        predictors["bayes"] = Bayes(SEEDED)
        own_key = fold_in_words(random_key(key), "measurements", "layers", SEEDED)
        rows = []
        for noise in track(self.noises, progress, "losses after each layer"):
            measured = evaluate(
                predictors,
                NoisyRegression(noise=noise),
                num_sequences=SEQUENCES_PER_LEVEL,
                every_layer=True,
                key=own_key,
            )
            for name, (family, depth, seed) in names.items():
                rows += [
                    {"noise": noise, "method": family, "layers": depth, "seed": seed, "layer": layer}
                    | measured.adjusted(name, layer).as_adjusted_loss()
                    | measured.robust_summary(name, layer)
                    for layer in measured.layers(name)
                ]
            floor = {"noise": noise, "method": "bayes", "layers": None, "seed": None, "layer": None}
            rows.append(floor | measured.adjusted("bayes").as_adjusted_loss() | measured.robust_summary("bayes"))
        return rows


def seed_names(zoo: Zoo, family: str, depth: int) -> dict[int, str]:
    """Return the names of the models at `SEEDED` that are in the zoo, by seed.

    Where there are none of several seeds, as of GD++ in the published zoo, it is the model of the table.
    """
    name = ModelSpec(family, depth, SEEDED).name
    seeded = {seed: f"{name}-seed{seed}" for seed in range(_NUM_SEEDS)}
    names = {seed: other for seed, other in seeded.items() if other in zoo.cards}
    return names or ({0: name} if family == "gd++" and name in zoo.cards else {})
