"""The loss at each noise level: of any predictors, and of the models of a noise prior."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax

from lintra.arguments import KeyLike, random_key
from lintra.baselines import TABLE1_BASELINES, baseline
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.evaluation.named_predictors import Predictors, resolve_predictors
from lintra.evaluation.table1_column import models_of
from lintra.predictor import AbstractPredictor
from lintra.problem.noise import Fixed
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks
from lintra.runtime.progress import SILENT, Progress, track
from lintra.zoo.collection import Zoo

SEQUENCES_PER_LEVEL = 8192
"""Number of sequences at each of many noise levels: one block."""


def profile(
    predictors: Predictors,
    problem: NoisyRegression | None,
    noise_stds: Sequence[float],
    *,
    num_sequences: int = 100_000,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> list[Comparison]:
    """Measure predictors at each of the given noise levels.

    The inputs, true weights and standardised noise are the same at every level.

    Args:
        predictors: One predictor or several, as `evaluate` takes them.
        problem: Inputs and number of examples; baselines given by name are tuned for its prior. `None`: the
            problem on which the models that are given by name were trained.
        noise_stds: Noise levels σ.
        num_sequences: Number of sequences at each of them.
        key: Randomness, a whole number or a key.
        progress: Told after every noise level.

    Returns:
        The losses at each noise level.
    """
    forks.check_not_forked()
    measured, problem = resolve_predictors(predictors, problem, key=key)
    problems = [
        NoisyRegression(problem.dim, problem.num_examples, Fixed(noise_std), problem.covariance)
        for noise_std in noise_stds
    ]
    return [
        evaluate(measured, fixed, num_sequences=num_sequences, key=key)
        for fixed in track(problems, progress, "noise levels")
    ]


@dataclass(frozen=True)
class Profile(AbstractMeasurement[list[Row]]):
    """The loss of models and baselines of a noise prior at noise levels from 0 to beyond its largest.

    Attributes:
        noise: The noise prior.
        depths: Numbers of layers of the models.
    """

    noise: str
    depths: range

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure the models that are in the zoo, and the baselines, on one block of sequences for each level."""
        del num_sequences  # one block of sequences at each noise level
        problem = NoisyRegression(noise=self.noise)
        own_key = fold_in_words(random_key(key), "measurements", "profile", self.noise)
        tuning_key, measuring_key = jax.random.split(own_key)
        models = models_of(zoo, self.noise, self.depths)
        predictors: dict[str, AbstractPredictor] = {spec.name: model for spec, model in models.items()}
        predictors |= {name: baseline(name, problem, key=tuning_key) for name in TABLE1_BASELINES}
        methods: dict[str, tuple[str, int | None]] = {spec.name: (spec.family, spec.num_layers) for spec in models}
        methods |= {name: (name, None) for name in TABLE1_BASELINES}
        noise_stds = problem.noise.grid()
        measured = profile(
            predictors,
            problem,
            noise_stds,
            num_sequences=SEQUENCES_PER_LEVEL,
            key=measuring_key,
            progress=progress,
        )
        return [
            {"noise": self.noise, "method": method, "layers": num_layers, "noise_std": noise_std}
            | losses.adjusted(name).as_adjusted_loss()
            | {"unadjusted_loss": losses.unadjusted(name).mean}
            | losses.robust_summary(name)
            for noise_std, losses in zip(noise_stds, measured, strict=True)
            for name, (method, num_layers) in methods.items()
        ]
