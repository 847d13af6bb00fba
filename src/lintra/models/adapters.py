"""Models used elsewhere than where they were trained: at another n, on other units, on correlated inputs."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from lintra.models.base import AbstractModel
from lintra.predictor import AbstractLayered
from lintra.statistics.gram import GramStatistics


class Rescaled(AbstractLayered):
    """A model used at another context length n with the Gram matrix multiplied by `context / n`.

    A model as printed sums over the context, so that a longer context means larger steps; rescaled, it
    averages. At the training length the two are the same.
    """

    model: AbstractModel

    def __check_init__(self) -> None:
        if not isinstance(self.model, AbstractModel):
            raise ValueError(f"`model` must be a linear transformer, got {type(self.model).__name__}.")

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """The weights of the model on the rescaled statistics."""
        return self.model.weights(self.rescale(stats))

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The weights of the model after every layer, on the rescaled statistics."""
        return self.model.layer_weights(self.rescale(stats))

    def rescale(self, stats: GramStatistics) -> GramStatistics:
        """The statistics that the model is shown."""
        factor = self.model.context / stats.count.astype(stats.gram.dtype)
        return GramStatistics(gram=stats.gram * factor[..., None, None], count=stats.count)


class InOwnUnits(AbstractLayered):
    """A predictor that is shown the labels of every context divided by their root mean square.

    It follows that weights are c times as large where labels are. Nothing is lost where the size of labels
    says nothing, as in other people's data; the paper's problem, with weights of variance one, tells how much
    noise there is by the size of labels too.
    """

    predictor: AbstractLayered

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """The weights in the labels' own unit, brought back."""
        unit = stats.label_rms
        return self.predictor.weights(stats.in_unit(unit)) * unit[..., None]

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The same after every layer."""
        unit = stats.label_rms
        return self.predictor.layer_weights(stats.in_unit(unit)) * unit[..., None, None]


class Shrunk(AbstractLayered):
    """A predictor that is shown inputs with no larger eigenvalue than training had.

    Independent inputs have Σ/n with eigenvalues up to about `(1 + √(d/n))²`. Where the largest eigenvalue is above
    that, all inputs are multiplied by one factor below 1, and the weights are brought back.

    Args:
        predictor: The predictor.
    """

    predictor: AbstractLayered

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """The weights on the shrunk inputs, brought back."""
        shrunk, factor = self._shrink(stats)
        return self.predictor.weights(shrunk) * factor[..., None]

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The same after every layer."""
        shrunk, factor = self._shrink(stats)
        return self.predictor.layer_weights(shrunk) * factor[..., None, None]

    def _shrink(self, stats: GramStatistics) -> tuple[GramStatistics, Float[Array, "*batch"]]:
        count = stats.count.astype(stats.gram.dtype)
        largest = jnp.linalg.eigvalsh(stats.xx)[..., -1] / count
        edge = (1 + jnp.sqrt(stats.dim / count)) ** 2
        factor = jnp.sqrt(edge / jnp.maximum(largest, edge))
        scale = jnp.broadcast_to(factor[..., None], (*factor.shape, stats.dim))
        scale = jnp.concatenate([scale, jnp.ones_like(factor)[..., None]], axis=-1)
        gram = stats.gram * scale[..., :, None] * scale[..., None, :]
        return GramStatistics(gram=gram, count=stats.count), factor
