"""What every family's recursion is built on: the layer T = I + Σₖ Pₖ (G/r) Qₖ, run over all layers."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from lintra import arguments
from lintra.kernel.plain import is_plain
from lintra.models.damping import Ranges, context_ratio, divisor, no_ranges, range_ratios, scale_context
from lintra.problem.loss import half_square, metric_loss

Gram = Float[Array, "*batch e e"]


def run_layers(
    transition: Callable[..., Float[Array, "e e"]],
    layers: PyTree[Array],
    ranges: Ranges | None,
    gram: Float[Array, "e e"],
) -> Float[Array, "layers e e"]:
    """Run all layers on one context, and return the matrix C after every layer.

    Args:
        transition: Gives T of a layer from its parameters and the Gram matrix before it.
        layers: Parameters with a leading axis of layers.
        ranges: Thresholds of damping. `None`: the layers are as printed.
        gram: The Gram matrix of the context, shape (d+1, d+1).
    """

    def step(
        state: tuple[Array, Array], layer: tuple[PyTree[Array], Array | None]
    ) -> tuple[tuple[Array, Array], Array]:
        gram, implicit_map = state
        parameters, thresholds = layer
        t = transition(parameters, gram if thresholds is None else gram / divisor(gram, thresholds))
        implicit_map = t @ implicit_map  # Lemma 4.3
        return (t @ gram @ t.T, implicit_map), implicit_map

    if ranges is not None:
        gram = scale_context(gram, ranges[0])
    start = (gram, jnp.eye(gram.shape[-1], dtype=gram.dtype))
    return jax.lax.scan(step, start, (layers, ranges))[1]


def run_ratios(
    transition: Callable[..., Float[Array, "e e"]],
    layers: PyTree[Array],
    ranges: Ranges,
    gram: Float[Array, "e e"],
) -> Float[Array, "rows 2"]:
    """Run all damped layers on one context, and return how far it and each layer are outside of the range.

    Args:
        transition: Gives T of a layer from its parameters and the Gram matrix before it.
        layers: Parameters with a leading axis of layers.
        ranges: Thresholds of damping.
        gram: The Gram matrix of the context, shape (d+1, d+1).

    Returns:
        Ratios, shape (layers+1, 2): what the context is divided by if it is above one, and zero, then `‖Σ‖₄ / ρ`
        and `λ / κ` of every layer.
    """

    def step(gram: Array, layer: tuple[PyTree[Array], Array]) -> tuple[Array, Array]:
        parameters, thresholds = layer
        t = transition(parameters, gram / divisor(gram, thresholds))
        return t @ gram @ t.T, range_ratios(gram, thresholds)

    of_context = jnp.stack([context_ratio(gram, ranges[0]), jnp.zeros((), gram.dtype)])
    of_layers = jax.lax.scan(step, scale_context(gram, ranges[0]), (layers, ranges))[1]
    return jnp.concatenate([of_context[None], of_layers])


def in_one_batch(function: Callable[[Array], Array], gram: Gram) -> Array:
    """Call a function of Gram matrices `(b, e, e)` with any leading axes."""
    result = function(gram.reshape(-1, *gram.shape[-2:]))
    return result.reshape(*gram.shape[:-2], *result.shape[1:])


def all_ranges(ranges: Ranges | None, parameters: Float[Array, "layers ..."]) -> Ranges:
    """Thresholds as the kernel takes them, where infinity stands for none."""
    return no_ranges(parameters.shape[0], parameters.dtype) if ranges is None else ranges


def data_cotangents(
    function: Callable[..., Array], data: tuple[Array, ...], cotangent: Array
) -> tuple[Array, ...]:
    """The cotangents of thresholds and Gram matrices, in plain JAX. Compiled code drops those it does not use."""
    return jax.vjp(function, *data)[1](cotangent)


def clip_limit(clip_norm: float | None, gram: Float[Array, "b e e"]) -> Float[Array, ""]:
    """The clip as the kernel takes it, where zero stands for none."""
    return jnp.asarray(0.0 if clip_norm is None else arguments.positive("clip_norm", clip_norm), gram.dtype)


def plain_loss(
    weigh: Callable[[Array], Float[Array, "b d"]],
    gram: Float[Array, "b e e"],
    target: Float[Array, "b d"],
    clip_norm: float | None,
) -> Float[Array, ""]:
    """Return the mean of `½‖w − target‖²` in plain JAX, where the Gram matrices are constants.

    Inside `plain_jax`, and without a clip, they are not, and all derivatives are those of the formula.
    """
    if is_plain() and clip_norm is None:
        return half_square(weigh(gram) - target).mean()
    return metric_loss(weigh(jax.lax.stop_gradient(gram)), target, None, clip_norm=clip_norm)
