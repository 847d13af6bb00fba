"""The loss above the Bayes predictor's, which is exactly `½ E‖w − w_B‖²`.

Given the data alone, the true weights have mean w_B. So the difference of the two losses is a mean of squares,
with far less noise than a difference of means, and it is never below zero.
"""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import arguments
from lintra.arguments import KeyLike, random_key
from lintra.baselines import TABLE1_BASELINES, baseline
from lintra.baselines.bayes import Bayes
from lintra.display import Row
from lintra.evaluation.adjusted_loss import evaluate, require_memory
from lintra.evaluation.blocks import block_size, fold_in_words, map_blocks
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.evaluation.named_predictors import Predictors, resolve_predictors
from lintra.kernel.precision import in_64_bits
from lintra.models.spec import ModelSpec
from lintra.predictor import AbstractPredictor
from lintra.problem.loss import half_square, overflow_to_inf
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks
from lintra.runtime.progress import SILENT, Progress
from lintra.statistics.sampling import sample_statistics
from lintra.zoo.collection import UnknownModelError, Zoo


def excess(
    predictors: Predictors,
    problem: NoisyRegression | None = None,
    *,
    num_sequences: int = 100_000,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> dict[str, Estimate]:
    """Measure the loss above the Bayes predictor's, on the same fresh sequences.

    Args:
        predictors: One predictor or several, as `evaluate` takes them.
        problem: Where the sequences come from. `None` (default): the problem on which the models that are given by
            name were trained.
        num_sequences: Number of sequences, rounded up to whole blocks.
        key: Randomness, a whole number or a key.
        progress: Told after every block of sequences.

    Returns:
        The excess by name.

    Examples:
        >>> above = excess("ada-ridge", NoisyRegression(noise="choice(1,3)"), num_sequences=8192)["ada-ridge"]
        >>> bool(abs(above.mean - (0.051 - 0.0058)) < 4 * above.standard_error)
        True
    """
    losses = excess_losses(predictors, problem, num_sequences=num_sequences, key=key, progress=progress)
    return {name: Estimate.from_values(values) for name, values in losses.items()}


def excess_losses(
    predictors: Predictors,
    problem: NoisyRegression | None = None,
    *,
    num_sequences: int = 100_000,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> dict[str, Float[np.ndarray, " n"]]:
    """Measure the loss above the Bayes predictor's on every sequence.

    Args:
        predictors: One predictor or several, as `evaluate` takes them.
        problem: Where the sequences come from, as `excess` takes it.
        num_sequences: Number of sequences, rounded up to whole blocks.
        key: Randomness, a whole number or a key.
        progress: Told after every block of sequences.

    Returns:
        `½‖w − w_B‖²` of every sequence, by name; infinite where weights overflow.
    """
    forks.check_not_forked()
    total = arguments.whole_number("num_sequences", num_sequences)
    with in_64_bits():
        measured, problem = resolve_predictors(predictors, problem, key=key)
        require_memory(problem, total, len(measured))
        num_blocks = -(-total // block_size(problem.dim))
        values: dict[str, list[np.ndarray]] = {name: [] for name in measured}
        block = partial(_block_excess, measured, Bayes(problem.noise), problem)
        for _, losses in map_blocks(block, num_blocks, random_key(key), progress):
            for name in measured:
                values[name].append(losses[name])
    return {name: np.concatenate(blocks) for name, blocks in values.items()}


@jax.jit
def _block_excess(
    predictors: dict[str, AbstractPredictor], bayes: Bayes, problem: NoisyRegression, key: Key[Array, ""]
) -> dict[str, Float[Array, " b"]]:
    """`½‖w − w_B‖²` of one block of sequences."""
    stats, _ = sample_statistics(problem, (block_size(problem.dim),), key=key)
    best = bayes.weights(stats)
    losses = {name: half_square(p.weights(stats) - best, problem.covariance) for name, p in predictors.items()}
    return overflow_to_inf(losses)


@dataclass(frozen=True)
class Excess(AbstractMeasurement[list[Row]]):
    """The loss above the Bayes floor, of models and of the baselines of Table 1, on a quarter of the sequences.

    Attributes:
        noise: The noise prior of the sequences.
        specs: The models.
    """

    noise: str
    specs: tuple[ModelSpec, ...]

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> list[Row]:
        """Measure the models that are in the zoo, and the baselines."""
        problem = NoisyRegression(noise=self.noise)
        own_key = fold_in_words(random_key(key), "measurements", "excess", self.noise)
        tuning_key, measuring_key = jax.random.split(own_key)
        specs = [spec for spec in self.specs if spec.name in zoo.cards]
        if not specs:
            raise UnknownModelError(f"There are no models at {self.noise} in the zoo.")
        predictors: dict[str, AbstractPredictor] = {spec.name: zoo.load(spec.name) for spec in specs}
        baselines = [name for name in TABLE1_BASELINES if name != "bayes"]
        predictors |= {name: baseline(name, problem, key=tuning_key) for name in baselines}
        quarter = -(-num_sequences // 4)
        floor = evaluate(Bayes(problem.noise), problem, num_sequences=quarter, key=measuring_key).adjusted().mean
        above = excess_losses(predictors, problem, num_sequences=quarter, key=measuring_key, progress=progress)

        def row(name: str, method: str, num_heads: int | None, num_layers: int | None) -> Row:
            size = {"noise": self.noise, "method": method, "heads": num_heads, "layers": num_layers}
            mean, of_means = Estimate.from_values(above[name]), Estimate.median_of_means(above[name])
            loss = {"excess": mean.mean, "standard_error": mean.standard_error, "bayes_floor": floor}
            robust = {"median_of_means": of_means.mean, "median_of_means_error": of_means.standard_error}
            tail = {"worst": float(above[name].max()), "num_sequences": len(above[name])}
            return size | loss | robust | tail

        rows = [row(spec.name, spec.family, spec.num_heads, spec.num_layers) for spec in specs]
        return rows + [row(name, name, None, None) for name in baselines]
