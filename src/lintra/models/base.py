"""What all linear transformers share: the implicit linear model, and the context they were made for."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.arguments import KeyLike
from lintra.models.damping import Damping, Divisors, Ranges
from lintra.models.thresholds import measure_damping
from lintra.predictor import AbstractLayered, check_precision
from lintra.problem.noisy_regression import NoisyRegression
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
    def from_map(cls, implicit_map: Float[Array, "*batch e e"]) -> "ImplicitModel":
        """Read the objects out of `C = [[M, u], [−wᵀ, a]]`."""
        return cls(
            M=implicit_map[..., :-1, :-1],
            u=implicit_map[..., :-1, -1],
            w=-implicit_map[..., -1, :-1],
            a=implicit_map[..., -1, -1],
        )


class AbstractModel(AbstractLayered):
    """A linear transformer with a readout `ŷ = −y_query` after its last layer.

    Parameters have leading axes (layers, heads) and are kept for a Gram matrix divided by the training
    context length, `num_examples`, which holds them near one; `matrices()` gives them as the paper prints
    them. At another context length a model is used as printed; `Rescaled(model)` is the other choice.

    A family is one class. It has its parameters as fields, `num_examples` and `token_dim`, and says how they are
    drawn (`_random`) and what they are in FULL (`to_full`). The forward pass, the loss and the matrices follow
    from `to_full`; a family overrides them where it has something faster.

    Attributes:
        family: Name of the family, as in `FAMILIES`.
        label: Its name in tables and figures.
        smaller: Name of the next smaller family, whose models `from_smaller` takes. `None`: there is none.
        damping: How steps are divided outside of the range of training. `None` (default): not at all, as printed.
        stored_damping: The damping that was stored with the model, which `with_damping` turns on.
    """

    family: ClassVar[str]
    label: ClassVar[str]
    smaller: ClassVar[str | None] = None
    _scaled: ClassVar[str]  # the parameter that is n times what is printed
    num_examples: eqx.AbstractVar[int]
    token_dim: eqx.AbstractVar[int]
    damping: Damping | None = eqx.field(default=None, kw_only=True)
    stored_damping: Damping | None = eqx.field(default=None, kw_only=True)

    @classmethod
    def random(
        cls: type[Model],
        num_layers: int,
        *,
        dim: int = 10,
        num_examples: int = 20,
        num_heads: int = 1,
        scale: float = 0.02,
        key: KeyLike = 0,
    ) -> Model:
        """A model whose parameters are independent normal numbers with standard deviation `scale`."""
        key = arguments.random_key(key)
        layers, heads = (
            arguments.whole_number("num_layers", num_layers),
            arguments.whole_number("num_heads", num_heads),
        )
        dim = arguments.whole_number("dim", dim)

        def draw(count: int, *shape: int) -> Float[Array, "count layers heads ..."]:
            return scale * jax.random.normal(key, (count, layers, heads, *shape))

        model = cls._random(draw, num_examples, dim)
        assert isinstance(model, cls)
        return model

    @classmethod
    @abc.abstractmethod
    def _random(cls, draw: Callable[..., Array], num_examples: int, dim: int) -> "AbstractModel":
        """Fill the parameters from `draw(how many, *shape of one per layer and head)`."""

    @abc.abstractmethod
    def to_full(self) -> "AbstractModel":
        """The same model as a member of FULL."""

    @classmethod
    def from_smaller(cls, model: "AbstractModel") -> "AbstractModel":
        """The same model as a member of this family, given as one of the next smaller family."""
        raise ValueError(f"`model` of family {model.family} cannot be converted to {cls.family}.")

    def matrices(self) -> tuple[Float[np.ndarray, "layers heads e e"], Float[np.ndarray, "layers heads e e"]]:
        """P and Q for which Eq. (3) holds as printed, on unscaled tokens."""
        return self.to_full().matrices()

    @classmethod
    def from_matrices(cls, P: ArrayLike, Q: ArrayLike, num_examples: int) -> "AbstractModel":
        """The model of Eq. (3) with these matrices, of shape (layers, heads, d+1, d+1)."""
        raise ValueError(f"Models of the family {cls.family} cannot be made from matrices.")

    def parameters(self) -> dict[str, Array]:
        """The parameters by name, each with leading axes (layers, heads)."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The names of the parameters."""
        others = {"damping", "stored_damping"}
        return [
            field.name for field in fields(cls) if not field.metadata.get("static") and field.name not in others
        ]

    @property
    def ranges(self) -> Ranges | None:
        """Thresholds of the damping for a Gram matrix divided by `num_examples`; `None` without damping."""
        return None if self.damping is None else self.damping.ranges(self.num_examples)

    def with_damping(self: Model, damping: Damping | NoisyRegression | str | None = None) -> Model:
        """The same model with damped steps, which do not explode on unusual contexts.

        Args:
            damping: The thresholds; or the problem of the model's training, or its noise prior as text, on which
                thresholds are measured. `None` (default): those that are stored with the model, as
                published models have them.

        Raises:
            ValueError: If there are none, or if they are for another number of layers.
        """
        damping = damping or self.damping or self.stored_damping
        if damping is None:
            raise ValueError(
                "`damping` must be given, since no thresholds are stored with this model: thresholds, or the "
                "problem or noise prior of its training, as in `model.with_damping('uniform(0,5)')`."
            )
        if not isinstance(damping, Damping):
            damping = measure_damping(self, damping)
        return _replace(self, "damping", damping)

    def without_damping(self: Model) -> Model:
        """The same model as printed. Its damping stays stored for `with_damping`."""
        return _replace(self.store_damping(self.stored_damping or self.damping), "damping", None)

    def store_damping(self: Model, damping: Damping | None) -> Model:
        """The same model, with thresholds that `with_damping` uses. `None`: with none."""
        return _replace(self, "stored_damping", damping)

    def from_printed(self: Model) -> Model:
        """The parameters, given as printed, where P is n times smaller.

        Also for steps of an optimiser, in the model's structure.
        """
        return eqx.tree_at(
            lambda tree: getattr(tree, self._scaled), self, replace_fn=lambda p: self.num_examples * p
        )

    @abc.abstractmethod
    def for_label_scale(self: Model, label_scale: float) -> Model:
        """The model that does for labels `label_scale` times as large what this one does, predictions included."""

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, ArrayLike], num_examples: int, dim: int) -> "AbstractModel":
        """The model with these parameters."""
        return cls(**parameters, num_examples=num_examples, dim=dim)  # pyright: ignore[reportCallIssue]

    def final_weights(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch d"]:
        """The implicit weights after the last layer, for Gram matrices already divided by `num_examples`."""
        return self._as_full().final_weights(gram)

    def loss(
        self, gram: Float[Array, "b e e"], target: Float[Array, "b d"], *, clip_norm: float | None = None
    ) -> Float[Array, ""]:
        """Mean of `½‖w − target‖²` for Gram matrices already divided by `num_examples`, fast to differentiate."""
        return self._as_full().loss(gram, target, clip_norm=clip_norm)

    def layer_maps(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch layers e e"]:
        """The matrix C after every layer, for Gram matrices already divided by `num_examples`."""
        return self._as_full().layer_maps(gram)

    def range_ratios(self, gram: Float[Array, "*batch e e"]) -> Float[Array, "*batch rows 2"]:
        """The ratio of the context as given, and `‖Σ‖₄ / ρ` and `λ / κ` of every layer, shape (..., layers+1, 2).

        For Gram matrices already divided by `num_examples`.
        """
        return self._as_full().range_ratios(gram)

    def _as_full(self) -> "AbstractModel":
        return damped_as(self.to_full(), self)

    @property
    def omega(self) -> Float[Array, "layers 2 2"]:
        """`[[ω_xx, ω_xy], [ω_yx, ω_yy]]` per layer, Eq. (9), of families that consist of these numbers.

        Raises:
            AttributeError: If the family has other parameters, as FULL has.
        """
        raise AttributeError(f"{type(self).__name__} has no ω of its own; `lintra.anatomy.omegas` averages them.")

    def with_dim(self, dim: int) -> "AbstractModel":
        """The same numbers for another number of inputs.

        Raises:
            ValueError: If the family has a parameter for each input, as FULL has, and `dim` is not its own.
        """
        if arguments.whole_number("dim", dim) != self.dim:
            raise ValueError(
                f"`dim` must be {self.dim}: {type(self).__name__} has parameters of its own for each input."
            )
        return self

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
        return _apply(type(self).final_weights, self, stats)

    def implicit(self, stats: GramStatistics) -> ImplicitModel:
        """The implicit linear model after every layer: fields have leading axes (..., layers)."""
        return ImplicitModel.from_map(_apply(type(self).layer_maps, self, stats))

    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The implicit weights after every layer, for every context."""
        return self.implicit(stats).w

    def divisors(self, stats: GramStatistics) -> Divisors:
        """How far contexts are outside of the range of training, and by how much each layer is damped.

        Args:
            stats: One context or a batch of contexts.

        Returns:
            Divisors of the context (`scaling`) and of every layer (`layers`), and the ratios that they follow
            from. All divisors are one for a model without damping.

        >>> from lintra.models import Diagonal
        >>> model = Diagonal.random(2, dim=1, num_examples=4).with_damping(Damping([9.0, 9.0], [10.0, 10.0], 3.0))
        >>> divisors = model.divisors(GramStatistics.from_data([[2.0], [2.0], [1.0]], [9.0, 3.0, 0.0]))
        >>> float(divisors.scaling), divisors.layers.shape  # tr Σ is 9
        (3.0, (2,))
        >>> round(float(divisors.layers[0]), 6)  # λ is 90, and 30 in the context that is scaled
        3.0
        """
        return Divisors.from_ratios(_apply(type(self).range_ratios, self, stats))


def _replace(model: Model, name: str, damping: Damping | None) -> Model:
    """Return a model with another damping."""
    if damping is not None and damping.rho.shape != (model.num_layers,):
        raise ValueError(
            f"`damping` must have thresholds for {model.num_layers} layers, got {damping.rho.shape[0]}."
        )
    changed = object.__new__(type(model))  # not by `__init__`, which would validate the parameters again
    for field in fields(model):
        object.__setattr__(changed, field.name, damping if field.name == name else getattr(model, field.name))
    return changed


def scale_labels(model: Model, label_scale: float) -> Model:
    """Return a model whose damping is for labels `label_scale` times as large."""
    for name in ("damping", "stored_damping"):
        if (damping := getattr(model, name)) is not None:
            model = _replace(model, name, damping.for_label_scale(label_scale))
    return model


def damped_as(model: Model, other: AbstractModel) -> Model:
    """Return a model with the damping of another one, which it was converted from."""
    return _replace(model.store_damping(other.stored_damping), "damping", other.damping)


@partial(jax.jit, static_argnums=0)
def _apply(function: Callable[..., Array], model: AbstractModel, stats: GramStatistics) -> Array:
    """Run a model on contexts, in their precision, on the scale its parameters are for."""
    if stats.dim != model.dim:
        raise ValueError(
            f"The model is for {model.dim} inputs and the context has {stats.dim}. "
            "Diagonal models can be moved to another number of inputs with `.with_dim(dim=...)`."
        )
    check_precision(stats)
    model = jax.tree.map(lambda leaf: leaf.astype(stats.gram.dtype), model)
    return function(model, stats.gram / model.num_examples)


def check_matrices(P: ArrayLike, Q: ArrayLike, names: tuple[str, str] = ("P", "Q")) -> tuple[Array, Array]:
    """Return P and Q as arrays of one shape (layers, heads, d+1, d+1), or reject them under their names."""
    P, Q = arguments.real_array(names[0], P), arguments.real_array(names[1], Q)
    for name, matrix in zip(names, (P, Q), strict=True):
        if matrix.ndim != 4 or 0 in matrix.shape or matrix.shape[2] != matrix.shape[3] or matrix.shape[2] < 2:
            raise ValueError(f"`{name}` must have shape (layers, heads, d+1, d+1), got {matrix.shape}.")
    if P.shape != Q.shape:
        raise ValueError(f"`{names[0]}` and `{names[1]}` must have the same shape, got {P.shape} and {Q.shape}.")
    P, Q = arguments.in_one_precision(P, Q)
    return P, Q
