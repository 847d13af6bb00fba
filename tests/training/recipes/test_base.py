from dataclasses import replace

import pytest

from lintra.models import FAMILIES, Diagonal, Full
from lintra.sweep import Cell
from lintra.training import train
from training_helpers import QUICK, SMALL, SPEC

pytestmark = pytest.mark.usefixtures("short_rounds")


class FullOfAnotherName(Full):
    """A family without a stage of its own."""

    family = "another"
    smaller = None


class DiagonalOfAnotherName(Diagonal):
    """A family without a stage of its own, whose parameters are not matrices."""

    family = "vectors"
    smaller = "gd++"

    @classmethod
    def from_smaller(cls, model):  # pyright: ignore[reportIncompatibleMethodOverride]
        diagonal = Diagonal.from_smaller(model)
        return cls.from_parameters(diagonal.parameters(), model.num_examples, model.dim)


@pytest.mark.parametrize("family", [FullOfAnotherName, DiagonalOfAnotherName])
@pytest.mark.parametrize("recipe", [SMALL, QUICK])
def test_a_family_without_a_stage_of_its_own_is_trained_by_descent(family, recipe, monkeypatch):
    monkeypatch.setitem(FAMILIES._members, family.family, family)
    spec = replace(SPEC, family=family.family)
    assert not recipe.unused(spec)
    result = train(spec, recipe, num_sequences=20_000, throw=False)
    assert type(result.model) is family
    zero = train(spec, replace(recipe, num_steps=1), num_sequences=20_000, throw=False)
    assert result.loss.mean <= zero.loss.mean
    assert result.loss.mean < 0.9  # zero weights have 0.95
    assert Cell(spec).cost > Cell(SPEC).cost
