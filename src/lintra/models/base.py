"""What all linear transformers share: the implicit linear model, and the context they were made for."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from lintra import arguments
from lintra.predictor import AbstractLayered
from lintra.statistics.gram import GramStatistics

Model = TypeVar("Model", bound="AbstractModel")


class ImplicitModel(eqx.Module):
    """The four objects of Theorem 4.1, which say where a layer has moved every token.

    A context token is now at `x' = M x + y u`, `y' = a y − ⟨w, x⟩`, and the query at `M x`, `−⟨w, x⟩`.
    """

    M: Float[Array, "*batch d d"]
    u: Float[Array, "*batch d"]
    w: Float[Array, "*batch d"]
    a: Float[Array, "*batch"]

    @classmethod
    def from_map(cls, moved: Float[Array, "*batch e e"]) -> "ImplicitModel":
        """Read the objects out of `C = [[M, u], [−wᵀ, a]]`."""
        return cls(M=moved[..., :-1, :-1], u=moved[..., :-1, -1], w=-moved[..., -1, :-1], a=moved[..., -1, -1])


class AbstractModel(AbstractLayered):
    """A linear transformer with a readout `ŷ = −y_query` after its last layer.

    Parameters have leading axes (layers, heads) and are kept for a Gram matrix divided by the training
    context length, `context`, which holds them near one; `matrices()` gives them as the paper prints
    them. At another context length a model is used as printed; `Rescaled(model)` is the other choice.
    """

    family: ClassVar[str]
    _scaled: ClassVar[str]  # the parameter that is n times what is printed
    context: eqx.AbstractVar[int]
    token_dim: eqx.AbstractVar[int]

    @classmethod
    def random(
        cls: type[Model],
        num_layers: int,
        *,
        dim: int = 10,
        context: int = 20,
        num_heads: int = 1,
        scale: float = 0.02,
        key: Key[Array, ""],
    ) -> Model:
        """A model whose parameters are independent normal numbers with standard deviation `scale`."""
        layers, heads = (
            arguments.whole_number("num_layers", num_layers),
            arguments.whole_number("num_heads", num_heads),
        )
        dim = arguments.whole_number("dim", dim)

        def draw(count: int, *shape: int) -> Float[Array, "count layers heads ..."]:
            return scale * jax.random.normal(key, (count, layers, heads, *shape))

        model = cls._random(draw, context, dim)
        assert isinstance(model, cls)
        return model

    @classmethod
    @abc.abstractmethod
    def _random(cls, draw: Callable[..., Array], context: int, dim: int) -> "AbstractModel":
        """Fill the parameters from `draw(how many, *shape of one per layer and head)`."""

    @abc.abstractmethod
    def matrices(self) -> tuple[Float[np.ndarray, "layers heads e e"], Float[np.ndarray, "layers heads e e"]]:
        """P and Q for which Eq. (3) holds as printed, on unscaled tokens."""

    @classmethod
    @abc.abstractmethod
    def from_matrices(cls, P: ArrayLike, Q: ArrayLike, context: int) -> "AbstractModel":
        """The model of Eq. (3) with these matrices, of shape (layers, heads, d+1, d+1)."""

    def parameters(self) -> dict[str, Array]:
        """The family's own numbers, by name."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if not field.metadata.get("static")
        }

    def from_printed_scale(self: Model) -> Model:
        """The family's own numbers, given as printed, where P is n times smaller.

        Numbers are parameters, or steps of an optimiser in the model's structure.
        """
        return eqx.tree_at(lambda tree: getattr(tree, self._scaled), self, replace_fn=lambda p: self.context * p)

    @abc.abstractmethod
    def relabelled(self: Model, unit: float) -> Model:
        """The model that does for labels `unit` times as large what this one does, predictions included."""

    @classmethod
    @abc.abstractmethod
    def from_parameters(cls, parameters: Mapping[str, ArrayLike], context: int, dim: int) -> "AbstractModel":
        """The model with these own numbers."""

    @abc.abstractmethod
    def final(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch d"]:
        """The implicit weights after the last layer, for Gram matrices already divided by `context`."""

    @abc.abstractmethod
    def distance(
        self, gram: Float[Array, "b e e"], target: Float[Array, "b d"], *, clip: float | None = None
    ) -> Float[Array, ""]:
        """Mean of `½‖w − target‖²` for Gram matrices already divided by `context`, fast to differentiate."""

    @abc.abstractmethod
    def maps(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch layers e e"]:
        """The matrix C after every layer, for Gram matrices already divided by `context`."""

    @property
    def num_layers(self) -> int:
        """Number of layers, L."""
        return next(iter(self.parameters().values())).shape[0]

    @property
    def num_heads(self) -> int:
        """Number of heads, H."""
        return next(iter(self.parameters().values())).shape[1]

    @property
    def dim(self) -> int:
        """Number of inputs, d."""
        return self.token_dim - 1

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """The implicit weights after the last layer, for every context."""
        return _apply(type(self).final, self, stats)

    def implicit(self, stats: GramStatistics) -> ImplicitModel:
        """The implicit linear model after every layer: fields have leading axes (..., layers)."""
        return ImplicitModel.from_map(_apply(type(self).maps, self, stats))

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The implicit weights after every layer, for every context."""
        return self.implicit(stats).w


@partial(jax.jit, static_argnums=0)
def _apply(function: Callable[..., Array], model: AbstractModel, stats: GramStatistics) -> Array:
    """Run a model on contexts, in their precision, on the scale its parameters are for."""
    if stats.dim != model.dim:
        raise ValueError(
            f"The model is for {model.dim} inputs and the context has {stats.dim}. "
            "Diagonal models can be moved to another number of inputs with `.at(dim=...)`."
        )
    model = jax.tree.map(lambda leaf: leaf.astype(stats.gram.dtype), model)
    return function(model, stats.gram / model.context)


def check_matrices(P: ArrayLike, Q: ArrayLike, names: tuple[str, str] = ("P", "Q")) -> tuple[Array, Array]:
    """Return P and Q as arrays of one shape (layers, heads, d+1, d+1), or refuse them under their names."""
    P, Q = arguments.real_array(names[0], P), arguments.real_array(names[1], Q)
    for name, matrix in zip(names, (P, Q), strict=True):
        if matrix.ndim != 4 or 0 in matrix.shape or matrix.shape[2] != matrix.shape[3] or matrix.shape[2] < 2:
            raise ValueError(f"`{name}` must have shape (layers, heads, d+1, d+1), got {matrix.shape}.")
    if P.shape != Q.shape:
        raise ValueError(f"`{names[0]}` and `{names[1]}` must have the same shape, got {P.shape} and {Q.shape}.")
    dtype = jnp.promote_types(P.dtype, Q.dtype)
    return P.astype(dtype), Q.astype(dtype)
