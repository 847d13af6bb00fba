"""What a model is: family, depth, heads and problem. Its name is written and parsed here only."""

import re
from dataclasses import dataclass
from typing import Any

from lintra import arguments
from lintra.models.families import FAMILIES
from lintra.problem.noise import AbstractNoisePrior
from lintra.problem.noisy_regression import NoisyRegression

_DEFAULT = NoisyRegression()
_NAME = re.compile(
    r"(?P<family>.+?)-(?P<num_layers>\d+)-(?P<noise>[^()]*\([^()]*\))"
    r"(-h(?P<num_heads>\d+))?(-n(?P<num_examples>\d+)-d(?P<dim>\d+))?"
)


@dataclass(frozen=True)
class ModelSpec:
    """A family, a depth, a number of heads and a problem: what is to be trained, or was.

    Arguments:
        family: A name of `FAMILIES`: `full`, `diag` or `gd++`.
        num_layers: Number of layers.
        problem: The regression problem. A noise prior, or its text, stands for `NoisyRegression(noise=…)`, which
            has ten inputs and twenty examples. The covariance of its inputs must be the identity.
        num_heads: Number of heads. Default: 1.

    >>> ModelSpec("diag", 5, "uniform(0, 5)").name
    'diag-5-uniform(0,5)'
    >>> ModelSpec("full", 3, NoisyRegression(5, 50, "choice(1,3)"), num_heads=2).name
    'full-3-choice(1,3)-h2-n50-d5'
    """

    family: str
    num_layers: int
    problem: NoisyRegression
    num_heads: int = 1

    def __init__(
        self, family: str, num_layers: int, problem: NoisyRegression | AbstractNoisePrior | str, num_heads: int = 1
    ):
        arguments.one_of("family", family, FAMILIES)
        if not isinstance(problem, NoisyRegression):
            problem = NoisyRegression(noise=problem)
        if not problem.is_isotropic:
            raise ValueError("`problem` must have `covariance=None`: models are trained on inputs with Λ = I.")
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "num_layers", arguments.whole_number("num_layers", num_layers))
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "num_heads", arguments.whole_number("num_heads", num_heads))

    @classmethod
    def from_name(cls, name: str) -> "ModelSpec":
        """Parse a name, the inverse of `name`.

        >>> spec = ModelSpec.from_name("gd++-2-fixed(1)-n8-d3")
        >>> spec.num_layers, spec.problem
        (2, NoisyRegression(dim=3, num_examples=8, noise='fixed(1)'))
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(
                f"`name` must look like full-7-uniform(0,5) or diag-3-choice(1,3)-h2-n50-d5, got {name!r}."
            )
        num_examples, dim = match["num_examples"] or _DEFAULT.num_examples, match["dim"] or _DEFAULT.dim
        problem = NoisyRegression(int(dim), int(num_examples), match["noise"])
        return cls(match["family"], int(match["num_layers"]), problem, int(match["num_heads"] or 1))

    @property
    def name(self) -> str:
        """The name under which such models are published."""
        problem = self.problem
        heads = f"-h{self.num_heads}" if self.num_heads > 1 else ""
        is_default = (problem.num_examples, problem.dim) == (_DEFAULT.num_examples, _DEFAULT.dim)
        size = "" if is_default else f"-n{problem.num_examples}-d{problem.dim}"
        return f"{self.family}-{self.num_layers}-{problem.noise}{heads}{size}"

    def settings(self) -> dict[str, Any]:
        """Plain values by name, for files and hashes."""
        return {
            "family": self.family,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "noise": str(self.problem.noise),
            "dim": self.problem.dim,
            "num_examples": self.problem.num_examples,
        }
