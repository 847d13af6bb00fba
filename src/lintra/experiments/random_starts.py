"""§6 on {1, 3}: is DIAG's distance to FULL a matter of bad local minima, or a fundamental difference?

DIAG is trained from very many random starts: gradient descent, then a second-order fit that ends in a minimum. The
rows are the losses that the starts end with, beside those of the published DIAG and FULL on the same sequences.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from lintra import zoo
from lintra.display import Row
from lintra.experiments.descents import (
    bayes_losses,
    best_models,
    excess_losses,
    label_scale,
    named_estimate,
    run_descent,
)
from lintra.experiments.experiment import AbstractExperiment
from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress, track
from lintra.training.descent.batch_source import BatchSource
from lintra.training.descent.descent import Descent
from lintra.training.descent.schedule import Schedule
from lintra.training.least_squares import SequenceLeastSquares, levenberg_marquardt
from lintra.training.sampling import sample_pool
from lintra.training.starts import RandomStarts

_CAUCHY_SCALE = 100.0  # a loss far above that of a good model, from where it counts less in the fit


@dataclass(frozen=True)
class Starts(AbstractExperiment):
    """DIAG from many random starts.

    Args:
        noise: Noise prior, at n = 20 and d = 10. Default: `choice(1,3)`.
        depths: Numbers of layers. Default: 3 and 4.
        num_starts: Number of starts of each depth. Default: 200.
        scale: Standard deviation of the parameters at the start, for labels divided by theirs. Default: 0.3.
        num_steps: Number of steps of Adam. Default: 1,000.
        learning_rate: Its rate, which falls along a cosine. Default: 0.03.
        batch_size: Number of sequences in a step. Default: 128.
        pool_size: Number of sequences that batches are drawn from. Default: 65,536.
        num_iterations: Number of iterations of Levenberg–Marquardt after it. Default: 25.
        fit_size: Number of sequences of this fit, a multiple of 2,048. Default: 4,096.
        num_sequences: Number of fresh sequences on which losses are measured. Default: 65,536.
    """

    name: ClassVar[str] = "starts"
    noise: str = "choice(1,3)"
    depths: tuple[int, ...] = (3, 4)
    num_starts: int = 200
    scale: float = 0.3
    num_steps: int = 1000
    learning_rate: float = 3e-2
    batch_size: int = 128
    pool_size: int = 65_536
    num_iterations: int = 25
    fit_size: int = 4096
    num_sequences: int = 65_536

    def parts(self) -> list[str]:
        """One part for each depth."""
        return [f"{depth} layers" for depth in self.depths]

    def run(self, part: str, progress: Progress = SILENT) -> list[Row]:
        """Train all starts of one depth, and measure them beside the published DIAG and FULL."""
        spec = ModelSpec("diag", int(part.split()[0]), NoisyRegression(noise=self.noise))
        key = jax.random.fold_in(jax.random.key(self.seed), spec.num_layers)
        training_key, fit_key, evaluation_key = jax.random.split(key, 3)
        descended = self._descend(spec, training_key, progress)
        polished = self._polish(descended, spec.problem, fit_key, progress)
        published = {family: zoo.load(f"{family}-{spec.num_layers}-{self.noise}") for family in ("diag", "full")}
        settings: dict[str, Any] = {"num_sequences": self.num_sequences, "key": evaluation_key}
        losses = excess_losses([*polished, *descended, published["diag"]], spec.problem, **settings)
        full = excess_losses([published["full"]], spec.problem, **settings)[0]
        common = {
            **named_estimate("published_diag", losses[-1]),
            **named_estimate("published_full", full),
            **named_estimate("bayes_floor", bayes_losses(spec.problem, **settings)),
        }
        return [
            {
                "layers": spec.num_layers,
                "start": start,
                **named_estimate("excess", losses[start]),
                **named_estimate("before_fit", losses[self.num_starts + start]),
                **named_estimate("above_published_diag", losses[start] - losses[-1]),
                **named_estimate("above_published_full", losses[start] - full),
                **common,
                "omega": np.asarray(polished[start].omega).tolist(),
            }
            for start in range(self.num_starts)
        ]

    def _descend(self, spec: ModelSpec, key: Key[Array, ""], progress: Progress) -> list[AbstractModel]:
        scale = label_scale(spec.problem)
        stage = Descent(
            spec.name,
            key,
            BatchSource(spec.problem, batch_size=self.batch_size, pool_size=self.pool_size, label_scale=scale),
            starts=RandomStarts(spec, self.num_starts, self.scale, label_scale=scale),
            num_steps=self.num_steps,
            schedule=Schedule(self.learning_rate, warmup_steps=100),
        )
        return best_models(stage, run_descent(stage, progress=progress))

    def _polish(
        self, models: list[AbstractModel], problem: NoisyRegression, key: Key[Array, ""], progress: Progress
    ) -> list[Diagonal]:
        """Fit every model to the same sequences, so that it ends in a minimum of their mean loss."""
        pool_key, signs_key = jax.random.split(key)
        pool = sample_pool(problem, objective="bayes", num_sequences=self.fit_size, key=pool_key)
        fit = SequenceLeastSquares.from_batch(pool, signs_key, _CAUCHY_SCALE)
        polished = []
        for model in track(models, progress, "fit"):
            assert isinstance(model, Diagonal)
            start = jnp.concatenate([model.p, model.q], axis=-1)
            found = levenberg_marquardt(fit, start, jnp.ones_like(start), self.num_iterations).parameters
            polished.append(Diagonal(found[..., :2], found[..., 2:], problem.num_examples, problem.dim))
        return polished
