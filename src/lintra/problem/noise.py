"""Noise priors: how the standard deviation σ of the label noise is drawn for each sequence."""

import abc
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

from lintra import arguments


class AbstractNoise(eqx.Module):
    """A prior over σ. It prints as the text that `parse_noise` reads.

    Parameters are plain floats and leaves of the pytree, so that priors of one kind share one
    compiled program under `jax.jit`.
    """

    @abc.abstractmethod
    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
    ) -> Float[Array, "..."]:
        """Draw σ for `shape` sequences."""

    @abc.abstractmethod
    def quadrature(self, num_nodes: int = 64) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Nodes and weights with `E[f(σ)] = Σ weights f(nodes)`; exact for priors with atoms."""

    @property
    def second_moment(self) -> float:
        """E[σ²], the best constant of a ridge regression that does not know σ."""
        nodes, weights = self.quadrature()
        return float(weights @ nodes**2)


class AbstractDiscrete(AbstractNoise):
    """A prior with finitely many values of σ."""

    @abc.abstractmethod
    def atoms(self) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """The values of σ and their probabilities."""

    def quadrature(self, num_nodes: int = 64) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """The atoms themselves."""
        values, probabilities = self.atoms()
        return np.asarray(values), np.asarray(probabilities)


class Fixed(AbstractDiscrete):
    """The same σ for every sequence: the problem of Eq. (6).

    >>> str(Fixed(2))
    'fixed(2)'
    """

    std: float

    def __init__(self, std: float):
        self.std = arguments.noise_std("std", std)

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...] = (), dtype: DTypeLike = float
    ) -> Float[Array, "..."]:
        """Repeat σ."""
        return jnp.full(shape, self.std, dtype=dtype)

    def atoms(self) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """One value, with certainty."""
        return jnp.asarray([self.std], dtype=float), jnp.ones(1)

    def __str__(self) -> str:
        return f"fixed({_number(self.std)})"


class Uniform(AbstractNoise):
    """σ uniform between two bounds, which may be equal: the problem of Eq. (7).

    >>> str(Uniform(0, 5))
    'uniform(0,5)'
    """

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

    def quadrature(self, num_nodes: int = 64) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Gauss–Legendre nodes between the bounds."""
        nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
        return self.low + (self.high - self.low) * (nodes + 1) / 2, weights / 2

    def __str__(self) -> str:
        return f"uniform({_number(self.low)},{_number(self.high)})"


class Choice(AbstractDiscrete):
    """σ one of several values, equally likely unless weights say otherwise.

    >>> str(Choice((1, 3, 5))), str(Choice((1, 3), weights=(1, 2)))
    ('choice(1,3,5)', 'choice(1:1,3:2)')
    """

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

    def __str__(self) -> str:
        if self.weights is None:
            return f"choice({','.join(map(_number, self.values))})"
        pairs = zip(self.values, self.weights, strict=True)
        return f"choice({','.join(f'{_number(value)}:{_number(weight)}' for value, weight in pairs)})"


def parse_noise(noise: "str | AbstractNoise") -> AbstractNoise:
    """Read a prior from its text; a prior is returned as it is.

    >>> parse_noise("choice(1,3)")
    Choice(values=(1.0, 3.0), weights=None)
    """
    if isinstance(noise, AbstractNoise):
        return noise
    match = re.fullmatch(r"\s*(fixed|uniform|choice)\s*\(([^()]*)\)\s*", noise) if isinstance(noise, str) else None
    if match is None:
        raise ValueError(f"`noise` must look like uniform(0,5), choice(1,3,5) or fixed(2), got {noise!r}.")
    kind, arguments = match[1], match[2].split(",")
    try:
        return _build(kind, arguments)
    except ValueError as error:
        raise ValueError(f"`noise` {noise!r} cannot be read: {error}") from None


def _build(kind: str, arguments: list[str]) -> AbstractNoise:
    if kind == "choice":
        pairs = [argument.partition(":") for argument in arguments]
        values = tuple(_float(value) for value, _, _ in pairs)
        if any(colon for _, colon, _ in pairs):
            return Choice(values, weights=tuple(_float(weight) for _, _, weight in pairs))
        return Choice(values)
    numbers = [_float(argument) for argument in arguments]
    expected = {"fixed": 1, "uniform": 2}[kind]
    if len(numbers) != expected:
        raise ValueError(f"`{kind}` takes {expected} number{'s' * (expected > 1)}, got {len(numbers)}.")
    return Fixed(*numbers) if kind == "fixed" else Uniform(*numbers)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text.strip()!r} is not a number.") from None


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def noise_levels(noise: str, count: int = 25) -> list[float]:
    """From 0 to one more than the largest noise level of a prior, and to 6 where it is a set.

    >>> noise_levels("uniform(0,5)")[::8], noise_levels("choice(1,3)")[-1]
    ([0.0, 2.0, 4.0, 6.0], 6.0)
    """
    prior = parse_noise(noise)
    top = 6 if isinstance(prior, AbstractDiscrete) else round(float(prior.quadrature()[0].max())) + 1
    return [float(level) for level in np.linspace(0.0, top, count)]
