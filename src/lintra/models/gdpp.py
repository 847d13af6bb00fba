"""GD++: DIAG without attention from labels, so that every layer is a polynomial in Σ, Eq. (11)."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel import library, operations
from lintra.kernel.plain import is_plain
from lintra.kernel.precision import in_64_bits
from lintra.models.base import damped_as, scale_labels
from lintra.models.damping import SCALED_RANGE, Ranges
from lintra.models.diagonal import AbstractDiagonal, Diagonal
from lintra.models.full import Full
from lintra.statistics.gram import GramStatistics


def damped_response(
    rates: Float[Array, "layers 2"],
    ranges: Ranges,
    eigenvalues: Float[Array, " d"],
    coordinates: Float[Array, " d"],
    label_energy: Float[Array, ""],
) -> Float[Array, "layers d"]:
    """The factors f of damped GD++ after every layer, `w = Σᵢ fᵢ αᵢ vᵢ`, for one context in Σ's eigenbasis.

    The divisor of a layer couples the eigenvalues, since ‖Σˡ‖₄ is a sum over all of them. A layer costs O(d).

    Args:
        rates: `[ω_xx, ω_yx]` of every layer.
        ranges: Thresholds of damping.
        eigenvalues: All eigenvalues of Σ.
        coordinates: α along the eigenvectors.
        label_energy: λ, the sum of squared labels.
    """
    # The context is scaled by one number c: s, α and λ are multiplied by it, and w = f α stays.
    norm = jnp.minimum(jnp.sum((eigenvalues / ranges[0, 0]) ** 4) ** 0.25, SCALED_RANGE)
    c = 1 / jnp.maximum(1, jnp.maximum(jnp.sum(eigenvalues) / ranges[0, 2], norm))
    s, alpha, labels = c * eigenvalues, c * coordinates, c * label_energy

    def step(state: tuple[Array, ...], layer: tuple[Array, Array]) -> tuple[tuple[Array, ...], Array]:
        m, f, remainder, labels = state
        rate, (rho, kappa, _) = layer
        z = m**2 * s  # eigenvalues of Σˡ
        r = jnp.maximum(jnp.maximum(1, jnp.sum((z / rho) ** 4) ** 0.25), labels / kappa)
        xx, yx = rate / r
        # αˡ = m · remainder · α, and λˡ⁺¹ = λˡ + 2 ω_yx ‖αˡ‖² + ω_yx² αˡᵀ Σˡ αˡ
        current = m * remainder * alpha
        labels = labels + 2 * yx * jnp.sum(current**2) + yx**2 * jnp.sum(z * current**2)
        f, remainder = f - yx * m**2 * remainder, remainder * (1 + yx * z)
        return (m * (1 + xx * z), f, remainder, labels), c * f

    start = jnp.ones_like(s), jnp.zeros_like(s), jnp.ones_like(s), labels
    return jax.lax.scan(step, start, (rates, ranges))[1]


def spectral_recursion(
    rates: Float[Array, "layers 2"], eigenvalues: Float[Array, "*k"]
) -> tuple[Float[Array, "layers *k"], Float[Array, "layers *k"]]:
    """The polynomial f of GD++ after every layer, `w = f(Σ) α`, at eigenvalues s of Σ, and `1 − s f`.

    A layer is `[ω_xx, ω_yx]`. `polynomial_loss` calls the kernel.
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
    node_weights: float | Float[Array, "..."],
    noise_var: float | Float[Array, ""],
    *,
    native: bool = True,
) -> Float[Array, ""]:
    """`Σ node_weights ½ [(1 − s f)² + noise_var s f²]` for GD++, f its polynomial of Σ after the last layer.

    Weights of 1/batch make it the mean loss over sequences with these eigenvalues, those of a quadrature the
    exact loss. With a Gram matrix divided by n, eigenvalues and `noise_var` are divided by n as well.
    """
    node_weights = jnp.broadcast_to(jnp.asarray(node_weights, eigenvalues.dtype), eigenvalues.shape)
    noise_var = jnp.asarray(noise_var, eigenvalues.dtype)
    if native and library.supports(rates, eigenvalues):
        return _polynomial(rates, eigenvalues.ravel(), node_weights.ravel(), noise_var)
    if not is_plain():  # as in the kernel, which has the gradient in the rates alone
        eigenvalues, node_weights, noise_var = jax.lax.stop_gradient((eigenvalues, node_weights, noise_var))
    f, rho = (values[-1] for values in spectral_recursion(rates, eigenvalues))
    return 0.5 * jnp.sum(node_weights * (rho**2 + noise_var * eigenvalues * f**2))


@jax.custom_vjp
def _polynomial(rates: Array, eigenvalues: Array, node_weights: Array, noise_var: Array) -> Float[Array, ""]:
    return _polynomial_forward(rates, eigenvalues, node_weights, noise_var)[0]


def _polynomial_forward(
    rates: Array, eigenvalues: Array, node_weights: Array, noise_var: Array
) -> tuple[Array, Float[Array, "layers 2"]]:
    loss, gradient = operations.polynomial_value_and_grad(
        rates[None], eigenvalues[None], node_weights[None], noise_var[None]
    )
    return loss[0], gradient[0]


_polynomial.defvjp(_polynomial_forward, lambda gradient, scale: (scale * gradient, None, None, None))


class GDPlusPlus(AbstractDiagonal):
    """Gradient descent with a preconditioner: `ω_xx` moves the inputs, `ω_yx` the labels, Eq. (11).

    Heads only add up here: a head with any `q_x` is the same as one with `q_x = 1` and scaled p.

    Arguments:
        rates: `n (ω_xx, ω_yx)` per layer and head, shape (layers, heads, 2), n the training context length.
        num_examples: The training context length n.
        dim: Number of inputs d; the same numbers serve any d, see `with_dim`.
    """

    family: ClassVar[str] = "gd++"
    label: ClassVar[str] = "GD++"
    _scaled: ClassVar[str] = "rates"
    rates: Float[Array, "layers heads 2"]
    num_examples: int = eqx.field(static=True)
    token_dim: int = eqx.field(static=True)

    def __init__(self, rates: ArrayLike, num_examples: int, dim: int):
        self.rates = arguments.real_array("rates", rates)
        if self.rates.ndim != 3 or self.rates.shape[-1] != 2 or 0 in self.rates.shape:
            raise ValueError(f"`rates` must have shape (layers, heads, 2), got {self.rates.shape}.")
        self.num_examples = arguments.whole_number("num_examples", num_examples)
        self.token_dim = arguments.whole_number("dim", dim) + 1

    @classmethod
    def _random(cls, draw: Callable[..., Array], num_examples: int, dim: int) -> "GDPlusPlus":
        return cls(draw(1, 2)[0], num_examples, dim)

    @classmethod
    def from_matrices(cls, P: ArrayLike, Q: ArrayLike, num_examples: int) -> "GDPlusPlus":
        """The model of Eq. (3) with these matrices, which must have the form of Eq. (8) with `q_y = 0`."""
        model = Diagonal.from_matrices(P, Q, num_examples)
        largest = float(jnp.abs(model.q[..., 1]).max())
        if largest > 0:
            raise ValueError(
                f"`Q` must have q_y = 0 in every head for GD++, got up to {largest:.3g}. "
                "Use `Diagonal.from_matrices` for other diagonal matrices."
            )
        return cls(model.p * model.q[..., :1], num_examples, model.dim)

    @property
    def omega(self) -> Float[Array, "layers 2 2"]:
        """`[[ω_xx, 0], [ω_yx, 0]]` per layer for a Gram matrix divided by `num_examples`, Eq. (9)."""
        with in_64_bits():
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
        self._require_printed("response")
        f, rho = spectral_recursion(self.rates.sum(axis=1), eigenvalues / self.num_examples)
        return f / self.num_examples, rho

    def spectral_loss(
        self,
        eigenvalues: Float[Array, "*k"],
        node_weights: float | Float[Array, "..."],
        noise_var: float | Float[Array, ""],
    ) -> Float[Array, ""]:
        """The loss, exact in weights, noise and query, for eigenvalues of Σ with these weights.

        Eigenvalues of a batch of contexts have weight 1/batch each; those of all contexts are given by
        `wishart_quadrature`.
        `noise_var` is E[σ²].
        """
        self._require_printed("spectral_loss")
        rates = self.rates.sum(axis=1)
        return polynomial_loss(rates, eigenvalues / self.num_examples, node_weights, noise_var / self.num_examples)

    def _require_printed(self, name: str) -> None:
        if self.damping is not None:
            raise ValueError(
                f"`{name}` is defined for the model as printed: a damped model is no polynomial in Σ. "
                "Call `model.without_damping()` first."
            )

    def spectral_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The implicit weights after every layer, computed in Σ's eigenbasis."""
        s, vectors = jnp.linalg.eigh(stats.xx)
        coordinates = jnp.einsum("...ij,...i->...j", vectors, stats.xy)
        if self.ranges is None:
            responses = jnp.moveaxis(self.response(s), 0, -2)
        else:
            n = self.num_examples
            respond = partial(damped_response, self.rates.sum(axis=1), self.ranges)
            respond = jnp.vectorize(respond, signature="(d),(d),()->(l,d)")
            responses = respond(s / n, coordinates / n, stats.yy / n) / n
        return jnp.einsum("...ij,...lj->...li", vectors, responses * coordinates[..., None, :])

    def for_label_scale(self, label_scale: float) -> "GDPlusPlus":
        """The model for labels `label_scale` times as large: itself, since it attends to inputs only."""
        return scale_labels(self, label_scale)

    def with_dim(self, dim: int) -> "GDPlusPlus":
        """The same numbers for another number of inputs, as printed: thresholds of damping are for one d."""
        return GDPlusPlus(self.rates, self.num_examples, dim)

    def to_diagonal(self) -> Diagonal:
        """The same model as a member of DIAG, with `q_x = 1` and `q_y = 0`."""
        with in_64_bits():
            q = jnp.stack([jnp.ones_like(self.rates[..., 0]), jnp.zeros_like(self.rates[..., 0])], axis=-1)
            return damped_as(Diagonal(self.rates, q, self.num_examples, self.dim), self)

    def to_full(self) -> Full:
        """The same model as a member of FULL."""
        return self.to_diagonal().to_full()
