"""Damping: steps of a layer are divided by how far its context is outside of the range of training."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.kernel.precision import in_64_bits

Ranges = Float[Array, "layers 2"]
"""Thresholds ρ and κ of every layer, for a Gram matrix divided by the training context length."""


class Damping(eqx.Module):
    """Thresholds beyond which the steps of a model are divided.

    A deep linear transformer is a polynomial of degree 3^layers in its data, and explodes outside of the range
    that it was trained on. With damping the context is first scaled, and a layer is then divided:

        G⁰ ← G⁰ / max(1, ‖Σ⁰‖_F / ρ⁰),    T = I + Σₖ Pₖ (Gˡ/r) Qₖ,    r = max(1, ‖Σˡ‖_F / ρˡ, λˡ / κˡ),

    with Gˡ = [[Σˡ, αˡ], [αˡᵀ, λˡ]]. The scaling divides inputs and labels by one number, so that w stays. Inside
    of the range, ‖Σˡ‖_F ≤ ρˡ and λˡ ≤ κˡ, the model is Eq. (3) as printed. Thresholds are for unscaled tokens.

    Attributes:
        rho: Largest ‖Σˡ‖_F of every layer that is not damped, shape (layers,).
        kappa: Largest λˡ that is not damped, shape (layers,). Infinite: labels are not damped.
        kind: `hard`, the formula above.
    """

    rho: Float[Array, " layers"]
    kappa: Float[Array, " layers"]
    kind: str = eqx.field(static=True)

    KINDS: ClassVar[tuple[str, ...]] = ("hard",)

    def __init__(self, rho: ArrayLike, kappa: ArrayLike | None = None, kind: str = "hard"):
        self.rho = _thresholds("rho", rho)
        self.kappa = _thresholds("kappa", jnp.full_like(self.rho, jnp.inf) if kappa is None else kappa)
        if self.kappa.shape != self.rho.shape:
            raise ValueError(f"`kappa` must have the shape of `rho`, {self.rho.shape}, got {self.kappa.shape}.")
        self.kind = arguments.one_of("kind", kind, self.KINDS)

    def for_label_scale(self, label_scale: float) -> "Damping":
        """The same for labels `label_scale` times as large; their squares are `label_scale²` times as large."""
        return Damping(self.rho, self.kappa * label_scale**2, self.kind)

    def to_json(self) -> dict[str, Any]:
        """The thresholds as files and cards hold them, with `None` for infinity."""
        numbers = {"rho": self.rho, "kappa": self.kappa}
        texts = {
            name: [float(x) if np.isfinite(x) else None for x in np.asarray(v)] for name, v in numbers.items()
        }
        return {"kind": self.kind, **texts}

    @classmethod
    def from_json(cls, value: Any, num_layers: int) -> "Damping":
        """Thresholds from a file or a card, which may hold anything.

        Raises:
            ValueError: If they are not two positive numbers for each layer.
        """
        if not isinstance(value, dict) or not {"kind", "rho", "kappa"} <= set(value):
            raise ValueError(f"`damping` must be an object with `kind`, `rho` and `kappa`, got {value!r:.99}.")
        arguments.one_of("kind", value["kind"], cls.KINDS)
        thresholds = []
        for name in ("rho", "kappa"):
            numbers = value[name]
            if not isinstance(numbers, list) or len(numbers) != num_layers or not all(map(_is_threshold, numbers)):
                raise ValueError(
                    f"`{name}` must be a list of {num_layers} positive numbers, or null for infinity, "
                    f"got {numbers!r:.99}."
                )
            thresholds.append(np.asarray([np.inf if number is None else number for number in numbers], float))
        with in_64_bits():
            return cls(*thresholds, kind=value["kind"])

    def ranges(self, num_examples: int) -> Ranges:
        """The thresholds of every layer for a Gram matrix divided by `num_examples`."""
        return jnp.stack([self.rho, self.kappa], axis=-1) / num_examples


def _thresholds(name: str, value: ArrayLike) -> Float[Array, " layers"]:
    if isinstance(value, Tracer):
        return value
    array = np.asarray(value)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.floating) or not (array > 0).all():
        raise ValueError(f"`{name}` must be one positive number for each layer, got {value!r:.200}.")
    return jnp.asarray(array)


def _is_threshold(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < np.inf


def no_ranges(num_layers: int, dtype: jnp.dtype) -> Ranges:
    """Thresholds of a model as printed, which damps nothing."""
    return jnp.full((num_layers, 2), jnp.inf, dtype)


def divisor(gram: Float[Array, "e e"], thresholds: Float[Array, "2"]) -> Float[Array, ""]:
    """`r = max(1, ‖Σ‖_F / ρ, λ / κ)` of one Gram matrix."""
    rho, kappa = thresholds
    ratios = gram[:-1, :-1] / rho
    # Squares are of numbers up to 1, so that none overflows. Where r = 1 its derivative is zero, also at Σ = 0.
    largest = jax.lax.stop_gradient(jnp.maximum(jnp.abs(ratios).max(), 1))
    norm = largest * jnp.sqrt(jnp.maximum(jnp.sum((ratios / largest) ** 2), largest**-2))
    return jnp.maximum(norm, jnp.maximum(gram[-1, -1] / kappa, 1))


def scale_context(gram: Float[Array, "e e"], thresholds: Float[Array, "2"]) -> Float[Array, "e e"]:
    """`G / max(1, ‖Σ‖_F / ρ)`, with the thresholds of the first layer."""
    return gram / divisor(gram, thresholds.at[1].set(jnp.inf))
