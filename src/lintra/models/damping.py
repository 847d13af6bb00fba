"""Damping: steps of a layer are divided by how far its context is outside of the range of training."""

import sys
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel.precision import in_64_bits

Ranges = Float[Array, "layers 3"]
"""Thresholds ρ, κ and t of every layer, for a Gram matrix divided by the training context length."""

SCALED_RANGE = 1.2
"""A context whose norm is up to this much above the first threshold is scaled, which is exact, and not damped."""


class Damping(eqx.Module):
    """Thresholds beyond which the steps of a model are divided.

    A deep linear transformer is a polynomial of degree 3^layers in its data, and explodes outside of the range
    that it was trained on. With damping the context is first scaled, and each layer is then divided:

        G⁰ ← G⁰ / max(1, tr Σ⁰ / t, min(‖Σ⁰‖₄ / ρ⁰, 1.2)),
        T = I + Σₖ Pₖ (Gˡ/r) Qₖ,    r = max(1, ‖Σˡ‖₄ / ρˡ, λˡ / κˡ),

    with Gˡ = [[Σˡ, αˡ], [αˡᵀ, λˡ]] and the Schatten norm ‖Σ‖₄ = (tr Σ⁴)^¼, the 4-norm of the eigenvalues. The
    scaling divides inputs and labels by one number, so that w stays. Inside of the range, tr Σ⁰ ≤ t, ‖Σˡ‖₄ ≤ ρˡ
    and λˡ ≤ κˡ, the model is Eq. (3) as printed. Thresholds are for unscaled tokens.

    Attributes:
        rho: Largest ‖Σˡ‖₄ of every layer that is not damped, shape (layers,).
        kappa: Largest λˡ that is not damped, shape (layers,). Infinite: labels are not damped.
        trace: Largest tr Σ⁰ of a context that is not scaled, shape (). Infinite: only their norm scales contexts.
        kind: `hard`, the formula above.
    """

    rho: Float[Array, " layers"]
    kappa: Float[Array, " layers"]
    trace: Float[Array, ""]
    kind: str = eqx.field(static=True)

    KINDS: ClassVar[tuple[str, ...]] = ("hard",)

    def __init__(
        self, rho: ArrayLike, kappa: ArrayLike | None = None, trace: ArrayLike = np.inf, kind: str = "hard"
    ):
        self.rho = _thresholds("rho", rho)
        self.kappa = _thresholds("kappa", jnp.full_like(self.rho, jnp.inf) if kappa is None else kappa)
        if self.kappa.shape != self.rho.shape:
            raise ValueError(f"`kappa` must have the shape of `rho`, {self.rho.shape}, got {self.kappa.shape}.")
        self.trace = _thresholds("trace", trace, ndim=0)
        self.kind = arguments.one_of("kind", kind, self.KINDS)

    def for_label_scale(self, label_scale: float) -> "Damping":
        """The same for labels `label_scale` times as large; their squares are `label_scale²` times as large."""
        return Damping(self.rho, self.kappa * label_scale**2, self.trace, self.kind)

    def to_json(self) -> dict[str, Any]:
        """The thresholds as files and cards hold them, with `None` for infinity."""
        rho, kappa, (trace,) = (
            [float(x) if np.isfinite(x) else None for x in np.atleast_1d(np.asarray(values))]
            for values in (self.rho, self.kappa, self.trace)
        )
        return {"kind": self.kind, "rho": rho, "kappa": kappa, "trace": trace}

    @classmethod
    def from_json(cls, value: Any, num_layers: int) -> "Damping":
        """Thresholds from a file or a card, which may hold anything.

        Raises:
            ValueError: If they are not two positive numbers for each layer, and one for the context.
        """
        if not isinstance(value, dict) or not {"kind", "rho", "kappa", "trace"} <= set(value):
            raise ValueError(
                f"`damping` must be an object with `kind`, `rho`, `kappa` and `trace`, got {value!r:.99}."
            )
        arguments.one_of("kind", value["kind"], cls.KINDS)
        if not _is_threshold(value["trace"]):
            raise ValueError(
                f"`trace` must be a positive number, or null for infinity, got {value['trace']!r:.99}."
            )
        thresholds = []
        for name in ("rho", "kappa"):
            numbers = value[name]
            if not isinstance(numbers, list) or len(numbers) != num_layers or not all(map(_is_threshold, numbers)):
                raise ValueError(
                    f"`{name}` must be a list of {num_layers} positive numbers, or null for infinity, "
                    f"got {numbers!r:.99}."
                )
            thresholds.append(np.asarray([np.inf if number is None else number for number in numbers], float))
        trace = np.float64(np.inf if value["trace"] is None else value["trace"])
        with in_64_bits():
            return cls(thresholds[0], thresholds[1], trace, value["kind"])

    def ranges(self, num_examples: int) -> Ranges:
        """The thresholds of every layer for a Gram matrix divided by `num_examples`."""
        trace = jnp.full_like(self.rho, self.trace)  # the same number in every row; the first row is used
        return jnp.stack([self.rho, self.kappa, trace], axis=-1) / num_examples


class Divisors(eqx.Module):
    """How far contexts are outside of the range of training, and what the context and the layers are divided by.

    A ratio above one is outside. Without damping all ratios are zero, and all divisors are one.

    Attributes:
        context_ratio: `max(tr Σ⁰ / t, min(‖Σ⁰‖₄ / ρ⁰, 1.2))` of the context as given, shape (...).
        input_ratios: `‖Σˡ‖₄ / ρˡ` before every layer, with the context scaled, shape (..., layers).
        label_ratios: `λˡ / κˡ` before every layer, shape (..., layers).
    """

    context_ratio: Float[Array, "*batch"]
    input_ratios: Float[Array, "*batch layers"]
    label_ratios: Float[Array, "*batch layers"]

    @classmethod
    def from_ratios(cls, ratios: Float[Array, "*batch rows 2"]) -> "Divisors":
        """From the ratios of the context as given, which has no second one, and of every layer, one row each."""
        return cls(ratios[..., 0, 0], ratios[..., 1:, 0], ratios[..., 1:, 1])

    @property
    def scaling(self) -> Float[Array, "*batch"]:
        """The number that the Gram matrix of the context is divided by, or one."""
        return jnp.maximum(1, self.context_ratio)

    @property
    def layers(self) -> Float[Array, "*batch layers"]:
        """The number r that the step of every layer is divided by, `max(1, ‖Σˡ‖₄ / ρˡ, λˡ / κˡ)`."""
        return jnp.maximum(1, jnp.maximum(self.input_ratios, self.label_ratios))


def _thresholds(name: str, value: ArrayLike, ndim: int = 1) -> Float[Array, "..."]:
    if isinstance(value, Tracer):
        return value
    array = np.asarray(value)
    if array.ndim != ndim or not np.issubdtype(array.dtype, np.floating) or not (array > 0).all():
        form = "one positive number for each layer" if ndim else "one positive number"
        raise ValueError(f"`{name}` must be {form}, got {value!r:.200}.")
    return jnp.asarray(array)


def _is_threshold(value: Any) -> bool:
    if value is None:
        return True
    # Whole numbers of a file have any number of digits, and the largest do not fit into a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def no_ranges(num_layers: int, dtype: jnp.dtype) -> Ranges:
    """Thresholds of a model as printed, which damps nothing."""
    return jnp.full((num_layers, 3), jnp.inf, dtype)


def divisor(gram: Float[Array, "e e"], thresholds: Float[Array, "3"]) -> Float[Array, ""]:
    """`r = max(1, ‖Σ‖₄ / ρ, λ / κ)` of one Gram matrix."""
    # Where r = 1 its derivative is zero, also at Σ = 0.
    return jnp.maximum(1, range_ratios(gram, thresholds, at_least=1.0).max())


def range_ratios(
    gram: Float[Array, "e e"], thresholds: Float[Array, "3"], *, at_least: float = 0.0
) -> Float[Array, "2"]:
    """`‖Σ‖₄ / ρ`, or `at_least`, and `λ / κ` of one Gram matrix."""
    rho, kappa, _ = thresholds
    ratios = gram[:-1, :-1] / rho
    # Powers are of numbers up to 1, so that none overflows.
    largest = jax.lax.stop_gradient(jnp.maximum(jnp.abs(ratios).max(), at_least))
    largest = jnp.where(largest > 0, largest, 1)
    small = ratios / largest
    fourth_power = jnp.maximum(jnp.sum((small @ small) ** 2), (at_least / largest) ** 4)  # tr Σ⁴ = ‖Σ²‖²
    return jnp.stack([largest * fourth_power**0.25, gram[-1, -1] / kappa])


def context_ratio(gram: Float[Array, "e e"], thresholds: Float[Array, "3"]) -> Float[Array, ""]:
    """`max(tr Σ / t, min(‖Σ‖₄ / ρ, 1.2))`, with the thresholds of the first layer."""
    # At least 1, since the norm has no derivative at Σ = 0 and a smaller ratio has no effect.
    norm_ratio = jnp.minimum(range_ratios(gram, thresholds, at_least=1.0)[0], SCALED_RANGE)
    norm_ratio = jnp.where(norm_ratio > 1, norm_ratio, 0)
    return jnp.maximum(jnp.sum(jnp.diagonal(gram)[:-1] / thresholds[2]), norm_ratio)


def scale_context(gram: Float[Array, "e e"], thresholds: Float[Array, "3"]) -> Float[Array, "e e"]:
    """`G / max(1, tr Σ / t, min(‖Σ‖₄ / ρ, 1.2))`, with the thresholds of the first layer."""
    return gram / jnp.maximum(1, context_ratio(gram, thresholds))
