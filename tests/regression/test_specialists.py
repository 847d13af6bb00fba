import numpy as np
import pytest

from lintra import GramStatistics, oracle_weights, solve
from lintra.regression import specialists
from regression_helpers import contexts


@pytest.mark.filterwarnings("ignore::lintra.regression.soundness.UnsoundWarning")
def test_specialists_do_not_know_the_unit_of_labels_and_are_far_better_than_least_squares():
    x, y, truth = contexts(4000)
    found = solve(x, y)
    np.testing.assert_allclose(solve(x, 1e6 * y), 1e6 * found, rtol=1e-9)
    oracle = np.asarray(oracle_weights(GramStatistics.from_data(x, y), truth.noise_std))
    ols = np.asarray([np.linalg.lstsq(a, b)[0] for a, b in zip(x, y, strict=True)])
    ours, theirs = (np.mean(np.sum((weights - oracle) ** 2, axis=1)) for weights in (found, ols))
    assert ours < theirs / 10


def test_every_specialist_is_there():
    cards = specialists.published().cards
    expected = {specialists.name(d, n) for d in specialists.DIMS for n in specialists.trained_num_examples(d)}
    assert set(cards) == expected
    for name, card in cards.items():
        each = 0.1 if card["context"] < 4 * card["dim"] else 0.04  # of a weight's variance
        assert card["bayes_floor"] < card["adjusted_loss"] < each * card["dim"], name
