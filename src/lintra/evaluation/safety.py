"""The gate: whether a model explodes on very many fresh sequences of its own problem."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from lintra import arguments
from lintra.arguments import KeyLike, random_key
from lintra.baselines.oracle import oracle_weights
from lintra.evaluation.blocks import block_size
from lintra.evaluation.estimate import Estimate, Moments
from lintra.evaluation.robustness import is_exploded
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.problem.loss import half_square, overflow_to_inf
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime import forks
from lintra.runtime.files import write_atomic
from lintra.runtime.progress import SILENT, Progress
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics

NUM_SEQUENCES = 10_000_000
"""Sequences of the gate: no explosion means a rate below 3e-7, at a confidence of 95 %."""
SEED = 20_241_210
"""Seed of the gate. It was fixed before any model was trained, and no training, selection or report uses it."""
_SAVE_EVERY = 16  # blocks


@dataclass(frozen=True)
class GateCounts:
    """What was counted for one model.

    Attributes:
        num_sequences: Number of sequences.
        num_exploded: Number of them whose adjusted loss `½‖w − w_σ‖²` is above 5d or not finite.
        worst: The largest adjusted loss; infinite if one is not finite.
        total: Sum of the losses.
        squares: Sum of their squares.
    """

    num_sequences: int = 0
    num_exploded: int = 0
    worst: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    @property
    def is_safe(self) -> bool:
        """Whether no sequence exploded."""
        return self.num_exploded == 0

    def adjusted_loss(self) -> Estimate:
        """Return the mean loss and its standard error."""
        return Moments(self.num_sequences, self.total, self.squares).estimate()

    def add(self, losses: Float[np.ndarray, " b"], dim: int) -> "GateCounts":
        """Count more losses."""
        moments = Moments(self.num_sequences, self.total, self.squares).add(losses)
        return GateCounts(
            num_sequences=moments.count,
            num_exploded=self.num_exploded + int(np.sum(is_exploded(losses, dim))),
            worst=max(self.worst, float(losses.max())),
            total=moments.total,
            squares=moments.squares,
        )


def count_explosions(
    models: Mapping[str, AbstractModel],
    problem: NoisyRegression,
    *,
    num_sequences: int = NUM_SEQUENCES,
    single: frozenset[str] = frozenset(),
    key: KeyLike,
    state_file: Path | None = None,
    progress: Progress = SILENT,
) -> dict[str, GateCounts]:
    """Count on how many fresh sequences models explode. All models have the same sequences.

    Args:
        models: Models by name.
        problem: Where the sequences come from.
        num_sequences: Number of sequences, rounded up to whole blocks. Default: ten million.
        single: Names of models that read their contexts in 32 bits. Default: none.
        key: Randomness. No sequence of training or selection must come from it.
        state_file: File for the counts so far. An interrupted job is resumed from it. `None` (default): write
            nothing to disk.
        progress: Told after every block.

    Returns:
        The counts by name.

    Raises:
        ValueError: If `state_file` is of another job.
    """
    forks.check_not_forked()
    size = block_size(problem.dim)
    num_blocks = -(-arguments.whole_number("num_sequences", num_sequences) // size)
    job = {
        "problem": repr(problem),
        "key": np.asarray(jax.random.key_data(random_key(key))).tolist(),
        "models": {name: fingerprint(models[name]) for name in sorted(models)},
        "single": sorted(single),
    }
    done, counts = _read(state_file, job) or (0, dict.fromkeys(models, GateCounts()))
    progress.start("counting explosions", num_blocks)
    with in_64_bits():
        for index in range(done, num_blocks):
            losses = _block(models, problem, size, single, jax.random.fold_in(random_key(key), index))
            counts = {name: counts[name].add(np.asarray(losses[name]), problem.dim) for name in models}
            if state_file is not None and ((index + 1) % _SAVE_EVERY == 0 or index + 1 == num_blocks):
                _write(state_file, job, index + 1, counts)
            progress.update(index + 1)
    return counts


def fingerprint(model: AbstractModel) -> str:
    """Return a hash of all that a model's weights depend on: family, size, parameters and thresholds."""
    digest = hashlib.sha256(f"{model.family} {model.num_examples} {model.dim}".encode())
    for leaf in jax.tree.leaves((model.parameters(), model.ranges)):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


# Sequences, weights and losses are programs of their own, so that a model is compiled once for all problems.
_sample = jax.jit(sample_statistics, static_argnums=(1,))


@jax.jit
def _losses(weights: Float[Array, "b d"], oracle: Float[Array, "b d"]) -> Float[Array, " b"]:
    return overflow_to_inf(half_square(weights.astype(oracle.dtype) - oracle))


def _block(
    models: Mapping[str, AbstractModel],
    problem: NoisyRegression,
    size: int,
    single: frozenset[str],
    key: Key[Array, ""],
) -> dict[str, Float[Array, " b"]]:
    stats, truth = _sample(problem, (size,), key=key)
    oracle = oracle_weights(stats, truth.noise_std)
    in_32_bits = GramStatistics(stats.gram.astype(jnp.float32), stats.num_examples)
    return {
        name: _losses(model.weights(in_32_bits if name in single else stats), oracle)
        for name, model in models.items()
    }


def _write(path: Path, job: dict, done: int, counts: dict[str, GateCounts]) -> None:
    # Infinite numbers are text, which float() reads, since JSON has none.
    rows = {name: {k: str(v) for k, v in asdict(count).items()} for name, count in counts.items()}
    write_atomic(path, json.dumps({"job": job, "done": done, "counts": rows}).encode())


def _read(path: Path | None, job: dict) -> tuple[int, dict[str, GateCounts]] | None:
    if path is None or not path.exists():
        return None
    try:
        state = json.loads(path.read_text())
        counts = {
            name: GateCounts(
                int(row["num_sequences"]),
                int(row["num_exploded"]),
                *(float(row[column]) for column in ("worst", "total", "squares")),
            )
            for name, row in state["counts"].items()
        }
        is_same, done = state["job"] == job and set(counts) == set(job["models"]), int(state["done"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"`state_file` '{path}' has no counts of explosions. Delete it, or pass another."
        ) from None
    if not is_same:
        raise ValueError(
            f"`state_file` '{path}' has the counts of other models, another problem or another key. Pass another."
        )
    return done, counts
