"""Models used elsewhere than where they were trained: at another context length, on labels of unknown unit."""

from jaxtyping import Array, Float

from lintra.models.base import AbstractModel
from lintra.predictor import AbstractLayered
from lintra.statistics import GramStatistics


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
