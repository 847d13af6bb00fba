"""GD++: DIAG without attention from labels, so that every layer is a polynomial in Σ, Eq. (11)."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra import checks
from lintra.models.diagonal import AbstractDiagonal, Diagonal
from lintra.models.full import Full
from lintra.objective import polynomial_loss
from lintra.recursion import spectral_recursion
from lintra.statistics import GramStatistics


class GDPlusPlus(AbstractDiagonal):
    """Gradient descent with a preconditioner: `ω_xx` moves the inputs, `ω_yx` the labels, Eq. (11).

    Heads only add up here: a head with any `q_x` is the same as one with `q_x = 1` and scaled p.

    Arguments:
        rates: `n (ω_xx, ω_yx)` per layer and head, shape (layers, heads, 2), n the training context length.
        context: The training context length n.
        dim: Number of inputs d; the same numbers serve any d, see `at`.
    """

    family: ClassVar[str] = "gd++"
    _scaled: ClassVar[str] = "rates"
    rates: Float[Array, "layers heads 2"]
    context: int = eqx.field(static=True)
    token_dim: int = eqx.field(static=True)

    def __init__(self, rates: ArrayLike, context: int, dim: int):
        self.rates = checks.real_array("rates", rates)
        if self.rates.ndim != 3 or self.rates.shape[-1] != 2 or 0 in self.rates.shape:
            raise ValueError(f"`rates` must have shape (layers, heads, 2), got {self.rates.shape}.")
        self.context = checks.whole_number("context", context)
        self.token_dim = checks.whole_number("dim", dim) + 1

    @classmethod
    def _random(cls, draw: Callable[..., Array], context: int, dim: int) -> "GDPlusPlus":
        return cls(draw(1, 2)[0], context, dim)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, ArrayLike], context: int, dim: int) -> "GDPlusPlus":
        """The model with these own numbers."""
        return cls(**parameters, context=context, dim=dim)

    @classmethod
    def from_matrices(cls, P: ArrayLike, Q: ArrayLike, context: int) -> "GDPlusPlus":
        """The model of Eq. (3) with these matrices, which must have the form of Eq. (8) with `q_y = 0`."""
        model = Diagonal.from_matrices(P, Q, context)
        largest = float(jnp.abs(model.q[..., 1]).max())
        if largest > 0:
            raise ValueError(
                f"`Q` must have q_y = 0 in every head for GD++, got up to {largest:.3g}. "
                "Use `Diagonal.from_matrices` for other diagonal matrices."
            )
        return cls(model.p * model.q[..., :1], context, model.dim)

    @property
    def omega(self) -> Float[Array, "layers 2 2"]:
        """`[[ω_xx, 0], [ω_yx, 0]]` per layer for a Gram matrix divided by `context`, Eq. (9)."""
        total = self.rates.sum(axis=1)[..., None]
        return jnp.concatenate([total, jnp.zeros_like(total)], axis=-1)

    def matrices(self) -> tuple[Float[np.ndarray, "layers heads e e"], Float[np.ndarray, "layers heads e e"]]:
        """P and Q for which Eq. (3) holds as printed, on unscaled tokens."""
        return self.to_diagonal().matrices()

    def response(self, eigenvalues: Float[Array, "*k"]) -> Float[Array, "layers *k"]:
        """The polynomial f after every layer, `w = f(Σ) α`, at eigenvalues of Σ: O(1) a layer and eigenvalue."""
        return self.response_and_remainder(eigenvalues)[0]

    def response_and_remainder(
        self, eigenvalues: Float[Array, "*k"]
    ) -> tuple[Float[Array, "layers *k"], Float[Array, "layers *k"]]:
        """The same with `1 − s f`, which is known to its last digit even where it is tiny."""
        f, rho = spectral_recursion(self.rates.sum(axis=1), eigenvalues / self.context)
        return f / self.context, rho

    def spectral_loss(
        self,
        eigenvalues: Float[Array, "*k"],
        masses: float | Float[Array, "..."],
        noise_var: float | Float[Array, ""],
    ) -> Float[Array, ""]:
        """The loss, exact in weights, noise and query, for eigenvalues of Σ with these masses.

        Eigenvalues of a batch of contexts have mass 1/batch each; `spectrum.wishart_quadrature` gives those
        of all contexts. `noise_var` is E[σ²].
        """
        rates = self.rates.sum(axis=1)
        return polynomial_loss(rates, eigenvalues / self.context, masses, noise_var / self.context)

    def spectral_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The implicit weights after every layer, computed in Σ's eigenbasis."""
        s, vectors = jnp.linalg.eigh(stats.xx)
        coordinates = jnp.einsum("...ij,...i->...j", vectors, stats.xy)
        responses = jnp.moveaxis(self.response(s), 0, -2)
        return jnp.einsum("...ij,...lj->...li", vectors, responses * coordinates[..., None, :])

    def relabelled(self, unit: float) -> "GDPlusPlus":
        """The model for labels `unit` times as large: itself, since it attends to inputs only."""
        return self

    def at(self, dim: int) -> "GDPlusPlus":
        """The same numbers for another number of inputs."""
        return GDPlusPlus(self.rates, self.context, dim)

    def to_diagonal(self) -> Diagonal:
        """The same model as a member of DIAG, with `q_x = 1` and `q_y = 0`."""
        q = jnp.stack([jnp.ones_like(self.rates[..., 0]), jnp.zeros_like(self.rates[..., 0])], axis=-1)
        return Diagonal(self.rates, q, self.context, self.dim)

    def to_full(self) -> Full:
        """The same model as a member of FULL."""
        return self.to_diagonal().to_full()
