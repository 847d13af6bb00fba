"""What a model is: family, depth, heads and problem; its name."""

from dataclasses import dataclass

from lintra import arguments
from lintra.models.families import FAMILIES
from lintra.problem.noise import parse_noise
from lintra.problem.noisy_regression import NoisyRegression


@dataclass(frozen=True)
class Task:
    """A cell of Table 1, or of a larger table: a family, a depth and a problem.

    Arguments:
        variant: `full`, `diag` or `gd++`.
        layers: Number of layers.
        noise: The noise prior.
        heads: Number of heads.
        dim: Number of inputs.
        context: Number of examples.

    >>> Task("diag", 5, "uniform(0, 5)").name
    'diag-5-uniform(0,5)'
    >>> Task("full", 3, "choice(1,3)", heads=2, dim=5, context=50).name
    'full-3-choice(1,3)-h2-n50-d5'
    """

    variant: str
    layers: int
    noise: str
    heads: int = 1
    dim: int = 10
    context: int = 20

    def __post_init__(self) -> None:
        arguments.one_of("variant", self.variant, tuple(FAMILIES))
        for name in ("layers", "heads", "dim", "context"):
            arguments.whole_number(name, getattr(self, name))
        object.__setattr__(self, "noise", str(parse_noise(self.noise)))

    @property
    def problem(self) -> NoisyRegression:
        """Where sequences come from."""
        return NoisyRegression(self.dim, self.context, self.noise)

    @property
    def name(self) -> str:
        """The name under which such models are published."""
        heads = f"-h{self.heads}" if self.heads > 1 else ""
        size = f"-n{self.context}-d{self.dim}" if (self.context, self.dim) != (20, 10) else ""
        return f"{self.variant}-{self.layers}-{self.noise}{heads}{size}"
