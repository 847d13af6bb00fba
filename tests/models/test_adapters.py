import pytest

from lintra.baselines import LeastSquares
from lintra.models import Rescaled
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics
from members import DIM, MODELS, NUM_EXAMPLES
from models_helpers import PROBLEM, close


def test_rescaling_is_a_choice_that_matters_only_at_another_length(getkey):
    model = MODELS["diag-4-h1"]
    same, _ = sample_statistics(PROBLEM, key=getkey())
    longer, _ = sample_statistics(NoisyRegression(dim=DIM, num_examples=3 * NUM_EXAMPLES), key=getkey())
    assert close(Rescaled(model).weights(same), model.weights(same), 1e-15)
    third = GramStatistics(gram=longer.gram / 3, num_examples=longer.num_examples)
    assert close(Rescaled(model).weights(longer), model.weights(third))
    assert not close(Rescaled(model).weights(longer), model.weights(longer), 1e-3)


def test_only_models_can_be_rescaled():
    with pytest.raises(ValueError, match="`model` must be a linear transformer, got LeastSquares"):
        Rescaled(LeastSquares())  # pyright: ignore[reportArgumentType]
