import numpy as np
import pytest

from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate
from lintra.evaluation.orderings import Ordering, find_orderings, is_same_model
from lintra.models import Full, GDPlusPlus
from lintra.models.families import insert_zero_layer, to_family
from lintra.models.spec import ModelSpec
from lintra.problem.noisy_regression import NoisyRegression

NOISE = "fixed(1)"
MODEL = GDPlusPlus(np.array([[[0.05, -0.3]], [[0.0, -0.2]]]), num_examples=20, dim=10)


def test_models_are_the_same_whatever_their_family_scale_and_layers_of_zeros():
    P, Q = MODEL.matrices()
    rescaled = Full.from_matrices(3.0 * P, Q / 3.0, MODEL.num_examples)
    for other in (to_family(MODEL, "full", 1), insert_zero_layer(MODEL, 1), rescaled):
        assert is_same_model(MODEL, other)
        assert is_same_model(other, MODEL)
    assert not is_same_model(
        MODEL, GDPlusPlus(np.array([[[0.05, -0.3]], [[0.0, -0.2001]]]), num_examples=20, dim=10)
    )
    assert not is_same_model(MODEL, GDPlusPlus(np.array([[[0.05, -0.3]]]), num_examples=20, dim=10))


def test_orderings_tell_pairs_of_one_model_from_others():
    models = {
        ModelSpec("gd++", 1, NOISE): GDPlusPlus(np.array([[[0.0, -0.5]]]), num_examples=20, dim=10),
        ModelSpec("gd++", 2, NOISE): MODEL,
        ModelSpec("diag", 2, NOISE): to_family(MODEL, "diag", 1),
    }
    named = {spec.name: model for spec, model in models.items()}
    orderings = find_orderings(models, evaluate(named, NoisyRegression(noise=NOISE), num_sequences=2000))
    found = {(o.larger.name, o.smaller.name): o for o in orderings}
    assert set(found) == {("gd++-2-fixed(1)", "gd++-1-fixed(1)"), ("diag-2-fixed(1)", "gd++-2-fixed(1)")}
    same = found["diag-2-fixed(1)", "gd++-2-fixed(1)"]
    assert same.is_same_model
    assert same.holds
    assert abs(same.difference.mean) < 1e-15
    assert not found["gd++-2-fixed(1)", "gd++-1-fixed(1)"].is_same_model


@pytest.mark.parametrize(
    ("explosion", "is_dominated"), [(0.0, False), (1e9, True), (np.inf, True), (np.nan, True)]
)
def test_a_difference_that_one_sequence_makes_is_dominated(explosion, is_dominated):
    class Measured:
        def differences(self, name, other):
            return np.append(np.full(9999, -0.1), explosion)

    models = {ModelSpec("gd++", depth, NOISE): MODEL for depth in (1, 2)}
    (ordering,) = find_orderings(models, Measured())  # pyright: ignore[reportArgumentType]
    assert ordering.is_dominated is is_dominated


@pytest.mark.parametrize(
    ("difference", "holds"), [((-1, 0.1), True), ((0.1, 0.06), True), ((0.1, 0.04), False), ((1e-16, 0), True)]
)
def test_an_ordering_holds_up_to_two_standard_errors(difference, holds):
    larger, smaller = ModelSpec("gd++", 2, NOISE), ModelSpec("gd++", 1, NOISE)
    assert Ordering(larger, smaller, Estimate(*difference)).holds is holds
