"""Orderings of models: larger families are not worse than smaller ones, nor deeper models than shallower ones."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate, is_dominating, share_of_largest
from lintra.models.base import AbstractModel
from lintra.models.families import PAPER_FAMILIES
from lintra.models.spec import ModelSpec

_ROUNDING = 1e-15  # of a loss, where labels are of size √d
_SAME = 1e-12  # relative difference of parameters that is rounding


@dataclass(frozen=True)
class Ordering:
    """A paired difference that should not be positive: of a larger family or a deeper model and a smaller one.

    Attributes:
        larger: The model that should not be worse.
        smaller: The other model.
        difference: Loss of the larger minus loss of the smaller, on the same sequences.
        is_same_model: Whether both have the same parameters, so that the ordering holds trivially.
        is_dominated: Whether few sequences dominate the difference: the ten with the largest differences have more
            than a tenth of the sum of absolute differences.
    """

    larger: ModelSpec
    smaller: ModelSpec
    difference: Estimate
    is_same_model: bool = False
    is_dominated: bool = False

    @property
    def holds(self) -> bool:
        """At most two standard errors above zero, or rounding."""
        return self.difference.mean <= max(2 * self.difference.standard_error, _ROUNDING)


def find_orderings(models: Mapping[ModelSpec, AbstractModel], measured: Comparison) -> list[Ordering]:
    """Compare deeper models with those of one layer less, and families with the next smaller one.

    Args:
        models: Models by spec.
        measured: Their losses on the same sequences, by the name of the spec.

    Returns:
        An ordering for every such pair.
    """
    by_size = {(spec.family, spec.num_layers): spec for spec in models}
    orderings = []
    for (family, depth), spec in by_size.items():
        smaller = PAPER_FAMILIES.index(family) - 1
        for size in ((family, depth - 1), (PAPER_FAMILIES[smaller] if smaller >= 0 else "", depth)):
            if size in by_size:
                orderings.append(_ordering(spec, by_size[size], models, measured))
    return orderings


def _ordering(
    larger: ModelSpec, smaller: ModelSpec, models: Mapping[ModelSpec, AbstractModel], measured: Comparison
) -> Ordering:
    differences = measured.differences(larger.name, smaller.name)
    return Ordering(
        larger,
        smaller,
        Estimate.from_values(differences),
        is_same_model=is_same_model(models[larger], models[smaller]),
        is_dominated=is_dominating(share_of_largest(np.abs(differences))),
    )


def is_same_model(first: AbstractModel, second: AbstractModel) -> bool:
    """Whether two models have the same parameters in the layers that change tokens.

    >>> from lintra.models import GDPlusPlus
    >>> from lintra.models.families import pad_layers
    >>> model = GDPlusPlus([[[0.1, -0.3]]], num_examples=20, dim=3)
    >>> is_same_model(pad_layers(model, 2).to_full(), model)
    True
    """
    tensors = [_effective_tensors(model) for model in (first, second)]
    if tensors[0].shape != tensors[1].shape:
        return False
    scale = max(np.abs(tensor).max(initial=0.0) for tensor in tensors)
    return bool(np.abs(tensors[0] - tensors[1]).max(initial=0.0) <= _SAME * scale)


def _effective_tensors(model: AbstractModel) -> Float[np.ndarray, "layers e e e e"]:
    """Return Σₖ Pₖ ⊗ Qₖ of each layer in which it is not zero.

    A layer T = I + Σₖ Pₖ G Qₖ depends on P and Q only through this tensor, so factors that cancel do not matter.
    """
    tensors = np.einsum("lhab,lhcd->labcd", *model.matrices())
    return tensors[np.any(tensors, axis=(1, 2, 3, 4))]
