"""Noise priors: how the standard deviation σ of the label noise is drawn for each sequence.

A prior is one class. It says how σ is drawn (`sample`) and integrated (`quadrature`). Its text, its posterior and
the range of σ in plots follow from these, and a class can override them.
"""

import abc
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

from lintra import arguments
from lintra.kernel.precision import in_64_bits
from lintra.problem.quadrature import adaptive_quadrature
from lintra.registry import Registry

LogLikelihood = Callable[[Float[Array, " k"]], Float[Array, " k"]]
"""The log-likelihood of noise variances σ², up to a constant."""

Nodes = tuple[np.ndarray | Array, np.ndarray | Array]
"""Nodes, and their weights."""

_POSTERIOR_NODES = 256  # of a prior without a rule of its own


class AbstractNoisePrior(eqx.Module):
    """A prior over σ. It prints as the text that `parse_noise` reads.

    A subclass has a `name`, its parameters as fields of type float, `sample` and `quadrature`. Parameters are
    leaves of the pytree, so that priors of one kind share one compiled program. `sample` and `quadrature` are
    called inside such programs, with traced parameters: write them with `jax.numpy`.
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
    ) -> Float[Array, "..."]:
        """Draw σ for `shape` sequences."""

    @abc.abstractmethod
    def quadrature(self, num_nodes: int = 64) -> Nodes:
        """Nodes and weights with `E[f(σ)] = Σ weights f(nodes)`; exact for priors with atoms."""

    @property
    def second_moment(self) -> float:
        """E[σ²], the best constant of a ridge regression that does not know σ."""
        with in_64_bits():
            nodes, weights = (np.asarray(values) for values in self.quadrature())
        return float(weights @ nodes**2)

    def support(self) -> tuple[float, float]:
        """The smallest and the largest σ that the quadrature knows."""
        with in_64_bits():
            nodes = np.asarray(self.quadrature()[0])
        return float(nodes.min()), float(nodes.max())

    def grid(self, num_points: int = 25) -> list[float]:
        """Values of σ at which losses are plotted: from 0 to one more than the largest, rounded.

        >>> Uniform(0, 5).grid()[::8]
        [0.0, 2.0, 4.0, 6.0]
        """
        return [float(noise_std) for noise_std in np.linspace(0.0, round(self.support()[1]) + 1, num_points)]

    def posterior(
        self, log_likelihood: LogLikelihood, min_noise_var: Float[Array, ""]
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """The posterior of σ² for one context, as nodes and their probabilities.

        By default the nodes are those of the prior's quadrature, which resolves posteriors that are not much
        narrower than the prior. A prior with a density can do better, see `Uniform`.

        Args:
            log_likelihood: The log-likelihood of noise variances.
            min_noise_var: The noise variance that stands for zero.

        Returns:
            Noise variances, shape (k,), and their probabilities, shape (k,).
        """
        try:
            nodes, weights = self.quadrature(_POSTERIOR_NODES)
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError):
            raise TypeError(
                f"`{type(self).__name__}.quadrature` cannot be traced: write it with `jax.numpy`, not with NumPy."
            ) from None
        noise_std, probabilities = (jnp.asarray(values, min_noise_var.dtype) for values in (nodes, weights))
        return _weigh(jnp.maximum(noise_std**2, min_noise_var), jnp.log(probabilities), log_likelihood)

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "AbstractNoisePrior":
        """Build a prior from what stands between its parentheses, separated by commas: one number per field."""
        if len(texts) != len(fields(cls)):
            expected = len(fields(cls))
            raise ValueError(f"`{cls.name}` takes {expected} number{'s' * (expected != 1)}, got {len(texts)}.")
        return cls(*(_float(text) for text in texts))

    def __str__(self) -> str:
        return f"{self.name}({','.join(_number(getattr(self, field.name)) for field in fields(self))})"


class AbstractDiscretePrior(AbstractNoisePrior):
    """A prior with finitely many values of σ."""

    @abc.abstractmethod
    def atoms(self) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """The values of σ and their probabilities."""

    def quadrature(self, num_nodes: int = 64) -> Nodes:
        """The atoms themselves."""
        with in_64_bits():
            return self.atoms()

    def grid(self, num_points: int = 25) -> list[float]:
        """Values of σ at which losses are plotted: from 0 to 6 or, if that is more, to one more than the largest.

        >>> Choice((1, 3)).grid()[-1], Fixed(8).grid()[-1]
        (6.0, 9.0)
        """
        top = max(6, round(self.support()[1]) + 1)
        return [float(noise_std) for noise_std in np.linspace(0.0, top, num_points)]

    def posterior(
        self, log_likelihood: LogLikelihood, min_noise_var: Float[Array, ""]
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """The exact posterior: the atoms with their probabilities."""
        noise_std, probabilities = (values.astype(min_noise_var.dtype) for values in self.atoms())
        return _weigh(jnp.maximum(noise_std**2, min_noise_var), jnp.log(probabilities), log_likelihood)


class Fixed(AbstractDiscretePrior):
    """The same σ for every sequence: the problem of Eq. (6).

    >>> str(Fixed(2))
    'fixed(2)'
    """

    name: ClassVar[str] = "fixed"
    noise_std: float

    def __init__(self, noise_std: float):
        self.noise_std = arguments.noise_std("noise_std", noise_std)

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
    ) -> Float[Array, "..."]:
        """Repeat σ."""
        return jnp.full(shape, self.noise_std, dtype=dtype)

    def atoms(self) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """One value, with certainty."""
        return jnp.asarray([self.noise_std], dtype=float), jnp.ones(1)


class Uniform(AbstractNoisePrior):
    """σ uniform between two bounds, which may be equal: the problem of Eq. (7).

    >>> str(Uniform(0, 5))
    'uniform(0,5)'
    """

    name: ClassVar[str] = "uniform"
    low: float
    high: float

    def __init__(self, low: float, high: float):
        self.low, self.high = arguments.noise_std("low", low), arguments.noise_std("high", high)
        if self.low > self.high:
            raise ValueError(f"`uniform(low,high)` needs low ≤ high, got low={low!r} and high={high!r}.")

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
    ) -> Float[Array, "..."]:
        """Draw σ between the bounds."""
        return self.low + (self.high - self.low) * jax.random.uniform(key, shape, dtype)

    def quadrature(self, num_nodes: int = 64) -> Nodes:
        """Gauss–Legendre nodes between the bounds."""
        nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
        return self.low + (self.high - self.low) * (nodes + 1) / 2, weights / 2

    def support(self) -> tuple[float, float]:
        """The bounds."""
        return self.low, self.high

    def posterior(
        self, log_likelihood: LogLikelihood, min_noise_var: Float[Array, ""]
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """Nodes in log σ that follow the posterior, however narrow it is."""
        low, high = (jnp.log(jnp.maximum(bound, jnp.sqrt(min_noise_var))) for bound in (self.low, self.high))

        log_posterior = jax.tree_util.Partial(_log_density_of_log_std, log_likelihood)
        log_std, probabilities = adaptive_quadrature(log_posterior, low, high)
        return jnp.exp(2 * log_std), probabilities


def _log_density_of_log_std(log_likelihood: LogLikelihood, log_std: Float[Array, " k"]) -> Float[Array, " k"]:
    # dσ = σ d log σ
    return log_likelihood(jnp.exp(2 * log_std)) + log_std


class Choice(AbstractDiscretePrior):
    """σ one of several values, equally likely unless weights say otherwise.

    >>> str(Choice((1, 3, 5))), str(Choice((1, 3), weights=(1, 2)))
    ('choice(1,3,5)', 'choice(1:1,3:2)')
    """

    name: ClassVar[str] = "choice"
    values: tuple[float, ...]
    weights: tuple[float, ...] | None

    def __init__(self, values: tuple[float, ...], weights: tuple[float, ...] | None = None):
        self.values = tuple(arguments.noise_std("values", value) for value in values)
        if not self.values or len(set(self.values)) < len(self.values):
            raise ValueError(f"`choice` needs one or more different values of σ, got {tuple(values)!r}.")
        self.weights = None if weights is None else tuple(float(weight) for weight in weights)
        if self.weights is not None:
            if len(self.weights) != len(self.values):
                raise ValueError(
                    f"`weights` must be as many as `values`, got {len(self.weights)} and {len(self.values)}."
                )
            if not all(1e-100 < weight < 1e100 for weight in self.weights):
                raise ValueError(
                    f"`weights` must be positive and neither tiny nor huge, got {tuple(weights or ())!r}."
                )

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
    ) -> Float[Array, "..."]:
        """Draw σ from the values."""
        values, probabilities = self.atoms()
        return jax.random.choice(key, values, shape, p=probabilities).astype(dtype)

    def atoms(self) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """The values and their probabilities."""
        weights = jnp.asarray(self.weights or (1.0,) * len(self.values), dtype=float)
        return jnp.asarray(self.values, dtype=float), weights / weights.sum()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "Choice":
        """Build the prior from `value` or `value:weight` each."""
        pairs = [text.partition(":") for text in texts]
        values = tuple(_float(value) for value, _, _ in pairs)
        if any(colon for _, colon, _ in pairs):
            return cls(values, weights=tuple(_float(weight) for _, _, weight in pairs))
        return cls(values)

    def __str__(self) -> str:
        if self.weights is None:
            return f"choice({','.join(map(_number, self.values))})"
        pairs = zip(self.values, self.weights, strict=True)
        return f"choice({','.join(f'{_number(value)}:{_number(weight)}' for value, weight in pairs)})"


PRIORS: Registry[type[AbstractNoisePrior]] = Registry(
    "priors", {prior.name: prior for prior in (Fixed, Uniform, Choice)}
)
"""Noise priors by name. A package adds its own by an entry point of the group `lintra.priors`."""


def parse_noise(noise: str | AbstractNoisePrior) -> AbstractNoisePrior:
    """Parse a prior from its text; a prior is returned unchanged.

    >>> parse_noise("choice(1,3)")
    Choice(values=(1.0, 3.0), weights=None)
    """
    if isinstance(noise, AbstractNoisePrior):
        return noise
    match = re.fullmatch(r"\s*([\w-]+)\s*\(([^()]*)\)\s*", noise) if isinstance(noise, str) else None
    if match is None or match[1] not in PRIORS:
        others = "".join(f", {name}(…)" for name in PRIORS if name not in ("uniform", "choice", "fixed"))
        raise ValueError(f"`noise` must look like uniform(0,5), choice(1,3,5) or fixed(2){others}, got {noise!r}.")
    try:
        return PRIORS[match[1]].parse(match[2].split(","))
    except ValueError as error:
        raise ValueError(f"`noise` {noise!r} cannot be read: {error}") from None


def _weigh(
    noise_var: Float[Array, " k"], log_prior: Float[Array, " k"], log_likelihood: LogLikelihood
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    return noise_var, jax.nn.softmax(log_likelihood(noise_var) + log_prior)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text.strip()!r} is not a number.") from None


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
