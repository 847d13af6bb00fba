"""GD++: DIAG without attention from labels, so that every layer is a polynomial in Σ, Eq. (11)."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel import library, operations
from lintra.models.diagonal import AbstractDiagonal, Diagonal
from lintra.models.full import Full
from lintra.statistics.gram import GramStatistics


def spectral_recursion(
    rates: Float[Array, "layers 2"], eigenvalues: Float[Array, "*k"]
) -> tuple[Float[Array, "layers *k"], Float[Array, "layers *k"]]:
    """The polynomial f of GD++ after every layer, `w = f(Σ) α`, at eigenvalues s of Σ, and `1 − s f`.

    A layer is `[ω_xx, ω_yx]`. The kernel's part in this is `objective.polynomial_loss`.
    """

    def step(state: tuple[Array, ...], rate: Float[Array, "2"]) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
        m, f, rho = state  # M, f and 1 − s f in Σ's eigenbasis
        z = m**2 * eigenvalues
        f, rho = f - rate[1] * m**2 * rho, rho * (1 + rate[1] * z)
        return (m * (1 + rate[0] * z), f, rho), (f, rho)

    start: tuple[Array, ...] = (
        jnp.ones_like(eigenvalues),
        jnp.zeros_like(eigenvalues),
        jnp.ones_like(eigenvalues),
    )
    return jax.lax.scan(step, start, rates)[1]


def polynomial_loss(
    rates: Float[Array, "layers 2"],
    eigenvalues: Float[Array, "*k"],
    masses: float | Float[Array, "..."],
    noise_var: float | Float[Array, ""],
    *,
    native: bool = True,
) -> Float[Array, ""]:
    """`Σ masses ½ [(1 − s f)² + noise_var s f²]` for GD++, f its polynomial of Σ after the last layer.

    Masses of 1/batch make it the mean loss over sequences with these eigenvalues, those of a quadrature the
    exact loss. With a Gram matrix divided by n, eigenvalues and `noise_var` are divided by n as well.
    """
    masses = jnp.broadcast_to(jnp.asarray(masses, eigenvalues.dtype), eigenvalues.shape)
    noise_var = jnp.asarray(noise_var, eigenvalues.dtype)
    if native and library.covers(rates, eigenvalues):
        return _polynomial(rates, eigenvalues.ravel(), masses.ravel(), noise_var)
    eigenvalues, masses, noise_var = jax.lax.stop_gradient((eigenvalues, masses, noise_var))
    f, rho = (values[-1] for values in spectral_recursion(rates, eigenvalues))
    return 0.5 * jnp.sum(masses * (rho**2 + noise_var * eigenvalues * f**2))


@jax.custom_vjp
def _polynomial(rates: Array, eigenvalues: Array, masses: Array, noise_var: Array) -> Float[Array, ""]:
    return _polynomial_forward(rates, eigenvalues, masses, noise_var)[0]


def _polynomial_forward(
    rates: Array, eigenvalues: Array, masses: Array, noise_var: Array
) -> tuple[Array, Float[Array, "layers 2"]]:
    loss, slope = operations.polynomial_descent(rates[None], eigenvalues[None], masses[None], noise_var[None])
    return loss[0], slope[0]


_polynomial.defvjp(_polynomial_forward, lambda slope, scale: (scale * slope, None, None, None))


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
        self.rates = arguments.real_array("rates", rates)
        if self.rates.ndim != 3 or self.rates.shape[-1] != 2 or 0 in self.rates.shape:
            raise ValueError(f"`rates` must have shape (layers, heads, 2), got {self.rates.shape}.")
        self.context = arguments.whole_number("context", context)
        self.token_dim = arguments.whole_number("dim", dim) + 1

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
