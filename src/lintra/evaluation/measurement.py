"""What the figures and the report are made from: each thing is measured once, on fresh sequences."""

import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import jax

from lintra.baselines import baseline
from lintra.baselines.bayes import Bayes
from lintra.evaluation.adjusted_loss import evaluate, evaluate_layers
from lintra.evaluation.bayes_excess import excess
from lintra.evaluation.column import BASELINES, Column
from lintra.evaluation.column import column as measure_column
from lintra.evaluation.noise_profile import profile
from lintra.models import families
from lintra.models.base import AbstractModel
from lintra.models.spec import Task
from lintra.problem.noise import noise_levels, parse_noise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.cache import keep_compiled_programs
from lintra.runtime.processes import finished
from lintra.runtime.progress import Track
from lintra.zoo.collection import UnknownModelError, Zoo

SEEDS = 5
SEEDED = "uniform(0,5)"

Row = dict[str, Any]
"""Values by column, as they are written to CSV."""

Piece = tuple[Any, ...]
"""Something to measure: the name of a method of `Measurements`, and its arguments."""


class Measurements:
    """Measures published models, and remembers what it has measured.

    Arguments:
        zoo: The models.
        sequences: Fresh sequences for a column of Table 1.
        profile_sequences: Fresh sequences for every noise level of a profile.
        seed: Seed of the sequences.
        track: Gives something that shows progress, from a description.
    """

    def __init__(
        self,
        zoo: Zoo,
        *,
        sequences: int = 1_000_000,
        profile_sequences: int = 8192,
        seed: int = 0,
        track: Callable[[str], Track] | None = None,
    ):
        self.zoo, self.sequences, self.profile_sequences = zoo, sequences, profile_sequences
        self._seed, self._track = seed, track
        self._kept: dict[Piece, Any] = {}

    def ahead(self, pieces: Iterable[Piece], executor: Executor) -> None:
        """Measure what will be asked for, the first pieces first, in an executor's processes."""
        settings = {name: getattr(self, name) for name in ("sequences", "profile_sequences")}
        settings |= {"seed": self._seed}
        missing = [piece for piece in dict.fromkeys(pieces) if piece not in self._kept]
        futures = {executor.submit(_measure, self.zoo.path, settings, piece): piece for piece in missing}
        for future in finished(futures, self._show("measuring")):
            if not isinstance(future.exception(), UnknownModelError):  # who asks for it will be told
                self._kept[futures[future]] = future.result()

    def _once(self, name: str, *arguments: Any) -> Any:
        """What was measured before, or is measured now."""
        if (name, *arguments) not in self._kept:
            self._kept[name, *arguments] = getattr(self, f"_{name}")(*arguments)
        return self._kept[name, *arguments]

    def models(self, noise: str, layers: range = range(1, 8)) -> dict[tuple[str, int], AbstractModel]:
        """The best models of one noise prior that are there, by family and number of layers."""
        names = {
            (variant, depth): f"{variant}-{depth}-{noise}" for variant in families.VARIANTS for depth in layers
        }
        return {place: self.zoo.load(name) for place, name in names.items() if name in self.zoo.cards}

    def column(self, noise: str) -> Column:
        """A column of Table 1."""
        return self._once("column", noise)

    def _column(self, noise: str) -> Column:
        return measure_column(
            noise,
            self.models(noise),
            num_sequences=self.sequences,
            key=self._fold("column", noise),
            track=self._show(f"Table 1, {noise}"),
        )

    def depth_rows(self, noise: str) -> list[Row]:
        """A column of Table 1 as rows for figures."""
        names = ("noise", "method", "layers", "adjusted_loss", "standard_error")
        return [{name: getattr(row, name) for name in names} for row in self.column(noise).rows]

    def profile(self, noise: str, layers: range) -> list[Row]:
        """Losses of models and baselines of a noise prior at noise levels from 0 to beyond its largest."""
        return self._once("profile", noise, layers)

    def _profile(self, noise: str, layers: range) -> list[Row]:
        problem = NoisyRegression(noise=noise)
        tuning_key, key = jax.random.split(self._fold("profile", noise))
        predictors: dict[str, Any] = {
            f"{variant}/{depth}": model for (variant, depth), model in self.models(noise, layers).items()
        }
        predictors |= {f"{name}/": baseline(name, problem, key=tuning_key) for name in BASELINES}
        levels = noise_levels(noise)
        track = self._show(f"profile, {noise}")
        rows = []
        for std, measured in zip(
            levels,
            profile(predictors, problem, levels, num_sequences=self.profile_sequences, key=key, track=track),
            strict=True,
        ):
            for name in predictors:
                method, _, depth = name.partition("/")
                rows.append(
                    {"noise": noise, "method": method, "layers": int(depth) if depth else None, "std": std}
                    | measured.adjusted(name).as_adjusted_loss()
                    | {"unadjusted_loss": measured.unadjusted[name].mean}
                )
        return rows

    def seeds(self, variant: str, layers: int) -> dict[int, AbstractModel]:
        """The models of all seeds at the prior of Figures 5 and 7; of GD++ one seed is published."""
        seeds = range(1 if variant == "gd++" else SEEDS)
        names = {seed: f"{variant}-{layers}-{SEEDED}-seed{seed}" for seed in seeds}
        if variant == "gd++":
            names[0] = f"{variant}-{layers}-{SEEDED}"
        return {seed: self.zoo.load(name) for seed, name in names.items() if name in self.zoo.cards}

    def layer_by_layer(self, noises: tuple[str, ...], depths: range) -> list[Row]:
        """Loss after every layer of every seed's models, and of their prior's Bayes predictor, on given priors."""
        return self._once("layer_by_layer", noises, depths)

    def _layer_by_layer(self, noises: tuple[str, ...], depths: range) -> list[Row]:
        models = {
            f"{variant}/{depth}/{seed}": model
            for variant in families.VARIANTS
            for depth in depths
            for seed, model in self.seeds(variant, depth).items()
        }
        if not models:
            raise UnknownModelError(f"There are no models of several seeds at {SEEDED} in the zoo.")
        bayes = {"bayes": Bayes(parse_noise(SEEDED))}
        settings: dict[str, Any] = {
            "num_sequences": self.profile_sequences,
            "key": self._fold("layers", SEEDED),
        }
        rows = []
        for noise in noises:
            problem = NoisyRegression(noise=noise)
            measured = evaluate_layers(models, problem, **settings)
            for name in measured.losses:
                variant, depth, seed, after = name.split("/")
                place = {"method": variant, "layers": int(depth), "seed": int(seed), "after": int(after)}
                rows.append({"noise": noise} | place | measured.adjusted(name).as_adjusted_loss())
            floor = evaluate(bayes, problem, **settings).adjusted("bayes").as_adjusted_loss()
            rows.append({"noise": noise, "method": "bayes", "layers": None, "seed": None, "after": None} | floor)
        return rows

    def excess(self, noise: str, tasks: tuple[Task, ...], baselines: tuple[str, ...]) -> list[Row]:
        """Loss above the Bayes floor, on a quarter of the sequences, of baselines and of models that are there."""
        return self._once("excess", noise, tasks, baselines)

    def _excess(self, noise: str, tasks: tuple[Task, ...], baselines: tuple[str, ...]) -> list[Row]:
        problem = NoisyRegression(noise=noise)
        tuning_key, key = jax.random.split(self._fold("excess", noise))
        there = {task.name: task for task in tasks if task.name in self.zoo.cards}
        if not there:
            raise UnknownModelError(f"There are no models at {noise} in the zoo.")
        predictors: dict[str, Any] = {name: self.zoo.load(name) for name in there}
        predictors |= {name: baseline(name, problem, key=tuning_key) for name in baselines}
        settings: dict[str, Any] = {"num_sequences": -(-self.sequences // 4), "key": key}
        track = self._show(f"loss above the Bayes floor, {noise}")
        floor = evaluate({"bayes": Bayes(problem.noise)}, problem, **settings).adjusted("bayes").mean
        rows = []
        for name, above in excess(predictors, problem, track=track, **settings).items():
            task = there.get(name)
            place = {"noise": noise, "method": task.variant if task else name}
            size = {"heads": task.heads, "layers": task.layers} if task else {"heads": None, "layers": None}
            figures = {"excess": above.mean, "standard_error": above.standard_error, "bayes_floor": floor}
            rows.append(place | size | figures)
        return rows

    def _fold(self, *words: str) -> jax.Array:
        """A key for each thing that is measured."""
        return jax.random.fold_in(
            jax.random.key(self._seed), zlib.crc32(" ".join(("measurements", *words)).encode())
        )

    def _show(self, description: str) -> Track | None:
        return None if self._track is None else self._track(description)


def _measure(zoo: Path, settings: dict[str, Any], piece: Piece) -> Any:
    """Measure a piece, in a process of its own."""
    keep_compiled_programs()
    name, *arguments = piece
    return getattr(Measurements(Zoo(zoo), **settings), name)(*arguments)
