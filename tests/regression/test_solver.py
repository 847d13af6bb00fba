from dataclasses import dataclass, field

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from lintra import GramStatistics, zoo
from lintra.baselines import Bayes
from lintra.models import Rescaled, UnitBlind
from lintra.predictor import AbstractLayered
from lintra.regression.solver import Solver
from regression_helpers import NAME, contexts


def test_the_bayes_predictor_of_a_specialist_does_not_know_units_either():
    x, y, _ = contexts(10)
    safe = Solver(UnitBlind(Rescaled(zoo.load(NAME))), "uniform(0,5)")
    weights = jnp.zeros((10, 10))
    one, thousand = (
        safe.compare(GramStatistics.from_data(x, label_scale * y), weights)[0] for label_scale in (1.0, 1000.0)
    )
    np.testing.assert_allclose(thousand, 1000 * np.asarray(one), rtol=1e-9)


@dataclass(eq=False)
class Passes:
    """Names of the forward passes that were made, with the hash of an object, which static fields need."""

    names: list[str] = field(default_factory=list)


class Counted(AbstractLayered):
    """A predictor that counts its forward passes while programs are compiled."""

    predictor: AbstractLayered
    passes: Passes = eqx.field(static=True)

    def weights(self, stats):
        self.passes.names.append("weights")
        return self.predictor.weights(stats)

    def layer_weights(self, stats):
        self.passes.names.append("layer_weights")
        return self.predictor.layer_weights(stats)


@pytest.mark.parametrize("path", [False, True])
def test_an_answer_takes_one_forward_pass_and_the_bayes_predictor_where_that_is_not_sound(path):
    x, y, _ = contexts(12)
    x = np.concatenate([x[:6], 3 * x[6:]])  # the last six are unlike training
    stats, model, passes = GramStatistics.from_data(x, y), Rescaled(zoo.load(NAME)), Passes()
    answer = Solver(Counted(model, passes), "uniform(0,5)").answer(stats, path=path)
    assert passes.names == ["layer_weights" if path else "weights"]
    replaced = sorted(answer.fallback)
    assert 0 < len(replaced) < 12
    by_model, bayes = np.asarray(model.weights(stats)), np.asarray(Bayes("uniform(0,5)").weights(stats))
    is_replaced = np.isin(np.arange(12), replaced)
    np.testing.assert_allclose(answer.weights, np.where(is_replaced[:, None], bayes, by_model), rtol=1e-9)
    if answer.path is not None:
        assert path
        steps = np.where(is_replaced[:, None, None], bayes[:, None], np.asarray(model.layer_weights(stats)))
        np.testing.assert_allclose(answer.path, steps, rtol=1e-9)
    else:
        assert not path
