"""Memory that a training run needs, checked before it starts."""

from lintra.evaluation.blocks import block_size
from lintra.models.spec import Task
from lintra.runtime import memory
from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.sampling import BLOCK
from lintra.zoo.model_file import LIMITS, check_sizes

_SHORT_BATCH = 256  # sequences in a step of FULL's short runs in the fast recipe
_UNKNOWNS = {"gd++": 2, "diag": 4}  # of a second-order fit, for every layer and head


def require_memory(task: Task, recipe: AbstractRecipe, num_sequences: int) -> None:
    """Reject a run that cannot fit into memory, or whose model is too large for a file.

    Arguments:
        task: What is trained.
        recipe: How it is trained; recipes other than lintra's own are taken to sample a block at a time.
        num_sequences: Fresh sequences to measure the result on.

    Raises:
        ValueError: With the arguments at fault, and the memory that they would need.
    """
    _require_memory(task, recipe, num_sequences)
    check_sizes({name: getattr(task, name) for name in LIMITS})


def _require_memory(task: Task, recipe: AbstractRecipe, num_sequences: int) -> None:
    memory.require_losses(num_sequences, 1)
    spectral = isinstance(recipe, Fast) and task.variant == "gd++"  # fitted without sequences
    memory.require_sampling(task.dim, task.context, block_size(task.dim) if spectral else BLOCK)
    sizes = task.layers, task.heads
    seeds, batch = getattr(recipe, "seeds", 1), getattr(recipe, "batch", 1)
    if not isinstance(recipe, Fast):
        memory.require_descent(*sizes, task.dim, full=task.variant == "full", seeds=seeds, batch=batch)
        return
    memory.require_growth(task.layers, task.heads if spectral else 1, _UNKNOWNS["gd++"])
    if task.variant == "diag":
        memory.require_growth(*sizes, _UNKNOWNS["diag"])
        memory.require_pool(task.dim, recipe.fit_pool, copies=4)  # in 64 bits, and once more for the last fit
    if task.variant == "full":
        memory.require_descent(*sizes, task.dim, full=True, seeds=seeds, batch=_SHORT_BATCH)
        memory.require_pool(task.dim, recipe.pool)
