"""Sequences of a descent: a pool or fresh batches, and a validation set."""

from collections.abc import Hashable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from lintra.problem.noisy_regression import NoisyRegression
from lintra.training.batch import Batch
from lintra.training.perturbations import Widened
from lintra.training.sampling import sample_batch, sample_pool
from lintra.training.stage import fingerprint
from lintra.training.validation import ValidationSet, sample_validation

DescentData = tuple[Batch | None, ValidationSet]
"""A pool, if there is one, and the validation set."""


class BatchSource(eqx.Module):
    """Where a descent takes its sequences from.

    Args:
        problem: The regression problem.
        objective: `query`, `truth` or `bayes`. Default: `bayes`.
        batch_size: Number of sequences in a step. Default: 2,048.
        pool_size: Number of sequences from which batches are drawn. `None` (default): each step has fresh ones.
        num_widened: Number of sequences that are wider than the problem's and are added to the pool. Default: 0.
        label_scale: Labels are divided by this. Default: 1.
        dtype: Precision of the steps. Default: `float32`.
        num_validation: Number of sequences of the validation set. Default: 16,384.
    """

    problem: NoisyRegression
    objective: str = eqx.field(static=True, default="bayes")
    batch_size: int = eqx.field(static=True, default=2048)
    pool_size: int | None = eqx.field(static=True, default=None)
    num_widened: int = eqx.field(static=True, default=0)
    label_scale: float = eqx.field(static=True, default=1.0)
    dtype: str = eqx.field(static=True, default="float32")
    num_validation: int = eqx.field(static=True, default=16_384)

    def cache_key(self, key: Key[Array, ""]) -> Hashable:
        """Everything that `prepare` depends on."""
        kind = self.objective, self.pool_size, self.num_widened, self.label_scale, self.dtype, self.num_validation
        return fingerprint(self.problem, key), kind

    def prepare(self, key: Key[Array, ""]) -> DescentData:
        """Draw the pool, if there is one, and the validation set."""
        pool_key, widened_key, validation_key = jax.random.split(key, 3)
        validation = sample_validation(self.problem, num_sequences=self.num_validation, key=validation_key)
        if self.pool_size is None:
            return None, validation
        sample = partial(sample_pool, self.problem, objective=self.objective, dtype=self.dtype)
        pool = sample(num_sequences=self.pool_size, key=pool_key)
        if self.num_widened:
            widened = sample(num_sequences=self.num_widened, perturbation=Widened(), key=widened_key)
            pool = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), pool, widened)
        return pool.divide_labels(self.label_scale), validation

    def batch(self, key: Key[Array, ""], step: Int[Array, ""], pool: Batch | None) -> Batch:
        """The sequences of a step, the same for all starts."""
        key = jax.random.fold_in(key, step)
        if pool is None:
            settings = {"objective": self.objective, "num_sequences": self.batch_size, "dtype": self.dtype}
            return sample_batch(self.problem, **settings, key=key).divide_labels(self.label_scale)
        return pool.pick(jax.random.randint(key, (self.batch_size,), 0, pool.mean_gram.shape[0]))
