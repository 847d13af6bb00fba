"""What every family's recursion is built on: the layer T = I + Σₖ Pₖ G Qₖ, run over all layers."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from lintra import arguments
from lintra.kernel.plain import is_plain
from lintra.problem.loss import half_square, metric_loss

Gram = Float[Array, "*batch e e"]


def run_layers(
    transition: Callable[..., Float[Array, "e e"]], layers: PyTree[Array], gram: Float[Array, "e e"]
) -> Float[Array, "layers e e"]:
    """Run all layers on one context, and return the matrix C after every layer.

    Args:
        transition: Gives T of a layer from its parameters and the Gram matrix before it.
        layers: Parameters with a leading axis of layers.
        gram: The Gram matrix of the context, shape (d+1, d+1).
    """

    def step(state: tuple[Array, Array], layer: PyTree[Array]) -> tuple[tuple[Array, Array], Array]:
        gram, implicit_map = state
        t = transition(layer, gram)
        implicit_map = t @ implicit_map  # Lemma 4.3
        return (t @ gram @ t.T, implicit_map), implicit_map

    start = (gram, jnp.eye(gram.shape[-1], dtype=gram.dtype))
    return jax.lax.scan(step, start, layers)[1]


def in_one_batch(function: Callable[[Array], Array], gram: Gram) -> Array:
    """Call a function of Gram matrices `(b, e, e)` with any leading axes."""
    result = function(gram.reshape(-1, *gram.shape[-2:]))
    return result.reshape(*gram.shape[:-2], *result.shape[1:])


def gram_cotangent(function: Callable[[Array], Array], gram: Float[Array, "b e e"], cotangent: Array) -> Array:
    """The cotangent of the Gram matrices, in plain JAX. Compiled code that does not use it drops it."""
    return jax.vjp(function, gram)[1](cotangent)[0]


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
