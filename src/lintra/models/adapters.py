"""Adapters for models outside of their training: another n, other units of labels, correlated inputs."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra.models.base import AbstractModel
from lintra.predictor import AbstractLayered
from lintra.statistics.gram import GramStatistics


class Rescaled(AbstractLayered):
    """A model at another context length n, with the Gram matrix multiplied by `model.num_examples / n`.

    A model as printed sums over the context, so a longer context means larger steps. A rescaled model averages.
    At the training length the two are the same.

    Args:
        model: The linear transformer.
    """

    model: AbstractModel

    def __check_init__(self) -> None:
        if not isinstance(self.model, AbstractModel):
            raise ValueError(f"`model` must be a linear transformer, got {type(self.model).__name__}.")

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """Return the weights of the model on the rescaled statistics."""
        return self.model.weights(self.rescale(stats))

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """Return the weights of the model after each layer, on the rescaled statistics."""
        return self.model.layer_weights(self.rescale(stats))

    def rescale(self, stats: GramStatistics) -> GramStatistics:
        """Return the statistics that the model reads."""
        factor = self.model.num_examples / stats.num_examples.astype(stats.gram.dtype)
        return GramStatistics(gram=stats.gram * factor[..., None, None], num_examples=stats.num_examples)


class UnitBlind(AbstractLayered):
    """A predictor that reads the labels of each context divided by their root mean square.

    Labels that are c times as large then have weights that are c times as large. On data whose unit of labels is
    arbitrary no information is lost. In the paper's problem, where weights have variance one, the size of the
    labels is informative about the noise, and that information is lost.

    Args:
        predictor: The predictor.
    """

    predictor: AbstractLayered

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """Return the weights, in the unit of the labels."""
        label_scale = stats.label_rms
        return self.predictor.weights(stats.divide_labels(label_scale)) * label_scale[..., None]

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """Return the weights after each layer, in the unit of the labels."""
        label_scale = stats.label_rms
        return self.predictor.layer_weights(stats.divide_labels(label_scale)) * label_scale[..., None, None]


class Shrunk(AbstractLayered):
    """A predictor that reads inputs whose largest eigenvalue is at most that of training.

    Independent inputs have Σ/n with eigenvalues up to about `(1 + √(d/n))²`. Where the largest eigenvalue is above
    that, all inputs are multiplied by one factor below 1, and the weights are converted back.

    Args:
        predictor: The predictor.
    """

    predictor: AbstractLayered

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """Return the weights on the shrunk inputs, converted back."""
        shrunk, factor = self._shrink(stats)
        return self.predictor.weights(shrunk) * factor[..., None]

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """Return the weights after each layer, converted back."""
        shrunk, factor = self._shrink(stats)
        return self.predictor.layer_weights(shrunk) * factor[..., None, None]

    def _shrink(self, stats: GramStatistics) -> tuple[GramStatistics, Float[Array, "*batch"]]:
        """Return the statistics of the shrunk inputs, and the factor of the inputs."""
        num_examples = stats.num_examples.astype(stats.gram.dtype)
        largest = jnp.linalg.eigvalsh(stats.xx)[..., -1] / num_examples
        edge = (1 + jnp.sqrt(stats.dim / num_examples)) ** 2
        factor = jnp.sqrt(edge / jnp.maximum(largest, edge))
        # Tokens (x, y) are multiplied by (factor, …, factor, 1).
        scale = jnp.broadcast_to(factor[..., None], (*factor.shape, stats.dim))
        scale = jnp.concatenate([scale, jnp.ones_like(factor)[..., None]], axis=-1)
        gram = stats.gram * scale[..., :, None] * scale[..., None, :]
        return GramStatistics(gram=gram, num_examples=stats.num_examples), factor
