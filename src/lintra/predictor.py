"""The one interface: everything that predicts, from a baseline to a transformer, gives `weights(stats)`."""

import abc
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from lintra import arguments
from lintra.statistics.gram import GramStatistics


class AbstractPredictor(eqx.Module):
    """Something that reads a context and predicts `⟨w, x⟩` for a query x."""

    @abc.abstractmethod
    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """The weights w for every context in `stats`, which may have any leading axes."""

    def predict(self, stats: GramStatistics, query: ArrayLike) -> Float[Array, "*batch"]:
        """The prediction `⟨w, x⟩` for queries x of shape (..., d), which must fit the contexts."""
        query = arguments.real_array("query", query)
        if query.ndim == 0 or query.shape[-1] != stats.dim:
            raise ValueError(f"`query` must have shape (..., {stats.dim}), got {query.shape}.")
        weights = self.weights(stats)
        return jnp.einsum("...d,...d->...", weights, query.astype(weights.dtype))


class AbstractContextwise(AbstractPredictor):
    """A predictor that is written down for one context; `weights` maps it over all."""

    @abc.abstractmethod
    def solve(self, stats: GramStatistics) -> Float[Array, " d"]:
        """The weights w for one context."""

    def weights(self, stats: GramStatistics) -> Float[Array, "*batch d"]:
        """The weights w for every context in `stats`, which may have any leading axes."""
        return over_contexts(type(self).solve, self, stats)


class AbstractLayered(AbstractPredictor):
    """A predictor that comes to its weights in steps, and can show them all."""

    @abc.abstractmethod
    def layer_weights(self, stats: GramStatistics) -> Float[Array, "*batch layers d"]:
        """The weights after every step, for every context in `stats`."""


@partial(jax.jit, static_argnums=0)
def over_contexts(function: Callable[..., Any], owner: Any, stats: GramStatistics, *arguments: Array) -> Any:
    """Map `function(owner, context, ...)` over all leading axes of the contexts and of what comes per context."""
    check_precision(stats)
    function = partial(function, owner)
    for _ in range(stats.gram.ndim - 2):
        function = jax.vmap(function)
    return function(stats, *arguments)


def check_precision(stats: GramStatistics) -> None:
    """Refuse statistics in 64 bits where JAX would compute with them in 32 bits."""
    arguments.require_precision("stats", stats.gram)
