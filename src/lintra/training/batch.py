"""A batch of training sequences, and the loss of a model on it."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from lintra.models.base import AbstractModel
from lintra.problem.loss import metric_loss
from lintra.statistics.gram import divide_labels

OBJECTIVES = ("query", "truth", "bayes")
"""What the loss compares with: a label at a sampled query, the true weights, the Bayes predictor's weights."""

Tree = TypeVar("Tree")


class Batch(eqx.Module):
    """Training sequences.

    Attributes:
        mean_gram: Gram matrices divided by the number of examples, shape (..., d+1, d+1).
        target: Weights that the model's weights are compared with, shape (..., d).
        sqrt_metric: Matrices R such that the loss of a sequence is `½ |R (w − target)|²`, shape (..., k, d).
            `None`: the identity.
    """

    mean_gram: Float[Array, "*batch e e"]
    target: Float[Array, "*batch d"]
    sqrt_metric: Float[Array, "*batch k d"] | None

    def errors(self, difference: Float[Array, "b d"]) -> Float[Array, "b k"]:
        """Errors `R Δ` of a difference Δ of weights."""
        return difference if self.sqrt_metric is None else jnp.einsum("bkd,bd->bk", self.sqrt_metric, difference)

    def pull_back(self, errors: Float[Array, "b k"]) -> Float[Array, "b d"]:
        """The transpose `Rᵀ e`: from a gradient with respect to the errors to one with respect to the weights."""
        return errors if self.sqrt_metric is None else jnp.einsum("bkd,bk->bd", self.sqrt_metric, errors)

    def divide_labels(self, label_scale: float | Float[Array, "*batch"]) -> "Batch":
        """The same sequences with labels, and so weights, divided by `label_scale`."""
        label_scale = jnp.asarray(label_scale, self.mean_gram.dtype)
        return Batch(
            divide_labels(self.mean_gram, label_scale), self.target / label_scale[..., None], self.sqrt_metric
        )

    def unit_blind(self) -> "Batch":
        """The same sequences, each with labels divided by their root mean square."""
        return self.divide_labels(jnp.sqrt(self.mean_gram[..., -1, -1]))

    def weighted(self, log_importance: Float[Array, " b"]) -> "Batch":
        """The same sequences, with losses multiplied by their importance."""
        root = jnp.exp(0.5 * log_importance)[:, None, None]
        size, dim = self.target.shape
        identity = jnp.broadcast_to(jnp.eye(dim, dtype=root.dtype), (size, dim, dim))
        sqrt_metric = identity if self.sqrt_metric is None else self.sqrt_metric
        return Batch(self.mean_gram, self.target, root * sqrt_metric)

    def pick(self, indices: Array) -> "Batch":
        """The sequences with these indices."""
        return jax.tree.map(lambda leaf: leaf[indices], self)


def loss(model: AbstractModel, batch: Batch, *, clip_norm: float | None = None) -> Float[Array, ""]:
    """Mean loss of a model on a batch, in its precision, with gradients clipped per sequence."""
    model = cast(model, batch.mean_gram.dtype)
    if batch.sqrt_metric is None:
        return model.loss(batch.mean_gram, batch.target, clip_norm=clip_norm)
    return metric_loss(model.final_weights(batch.mean_gram), batch.target, batch.sqrt_metric, clip_norm=clip_norm)


def cast(tree: Tree, dtype: DTypeLike) -> Tree:
    """Cast all arrays to another precision."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)
