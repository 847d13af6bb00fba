"""Memory that a training run needs, checked before it starts."""

from lintra.evaluation.blocks import block_size
from lintra.models.diagonal import Diagonal
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus
from lintra.models.spec import ModelSpec
from lintra.runtime import memory
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.sampling import BLOCK
from lintra.zoo.model_file import LIMITS, check_sizes

_SHORT_BATCH = 256  # sequences in a step of the fast recipe's short runs


def require_memory(spec: ModelSpec, recipe: AbstractRecipe, num_sequences: int) -> None:
    """Reject a run that cannot fit into memory, or whose model is too large for a file.

    Args:
        spec: The model to train.
        recipe: How it is trained. Recipes other than lintra's own are assumed to sample one block at a time.
        num_sequences: Number of fresh sequences on which the result is measured.

    Raises:
        ValueError: With the arguments at fault, and the memory that they would need.
    """
    _require_memory(spec, recipe, num_sequences)
    problem = spec.problem
    sizes = spec.num_layers, spec.num_heads, problem.dim, problem.num_examples
    check_sizes(dict(zip(LIMITS, sizes, strict=True)))


def _require_memory(spec: ModelSpec, recipe: AbstractRecipe, num_sequences: int) -> None:
    memory.require_losses(num_sequences, 1)
    family = spec.family
    spectral = isinstance(recipe, Fast) and family == GDPlusPlus.family  # fitted without sequences
    memory.require_sampling(
        spec.problem.dim, spec.problem.num_examples, block_size(spec.problem.dim) if spectral else BLOCK
    )
    sizes = spec.num_layers, spec.num_heads
    starts = {"full": family == Full.family, "num_starts": getattr(recipe, "num_starts", 1)}
    if not isinstance(recipe, Fast):
        batch_size = getattr(recipe, "batch_size", 1)
        memory.require_descent(*sizes, spec.problem.dim, **starts, batch_size=batch_size)
        return
    memory.require_growth(spec.num_layers, spec.num_heads if spectral else 1, GDPlusPlusGrowth.num_unknowns)
    if family == Diagonal.family:
        memory.require_growth(*sizes, DiagonalGrowth.num_unknowns)
        # In 64 bits, and once more for the last fit.
        memory.require_pool(spec.problem.dim, recipe.fit_pool_size, num_copies=4)
    elif not spectral:
        memory.require_descent(*sizes, spec.problem.dim, **starts, batch_size=_SHORT_BATCH)
        memory.require_pool(spec.problem.dim, recipe.pool_size)
