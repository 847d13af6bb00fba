"""Recipes: settings that become stages."""

from lintra.training.recipes.base import AbstractRecipe
from lintra.training.recipes.fast import Fast
from lintra.training.recipes.paper import Paper

RECIPES: dict[str, type[AbstractRecipe]] = {"fast": Fast, "paper": Paper}
"""Recipes by name."""


def recipe_name(recipe: AbstractRecipe) -> str:
    """The recipe's name in `RECIPES`, or that of its class.

    >>> recipe_name(Fast())
    'fast'
    """
    names = {kind: name for name, kind in RECIPES.items()}
    return names.get(type(recipe), type(recipe).__name__)
