import jax
import numpy as np
import pytest

from lintra.baselines import Bayes, baseline
from lintra.evaluation import paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate, ProtocolQuantiles
from lintra.problem.noisy_regression import NoisyRegression


def _check_column(noise, num_sequences, key):
    problem = NoisyRegression(noise=noise)
    names = ("const-ridge", "ada-ridge", "tuned-ridge")
    keys = jax.random.split(key, 3)
    predictors = {name: baseline(name, problem, key=keys[0]) for name in names}
    measured = evaluate(
        predictors | {"bayes": Bayes(problem.noise)}, problem, num_sequences=num_sequences, key=keys[1]
    )
    # The standard error of the protocol's 100,000 sequences is known to a few percent from fewer.
    protocol = evaluate(predictors, problem, num_sequences=16_384, protocol=True, key=keys[2])
    for name in names:
        printed = paper.printed_table1()[name, None, noise]
        single = Estimate.from_values(protocol.protocol_losses[name, None])
        single_error = single.standard_error * (16_384 / 100_000) ** 0.5
        error = np.hypot(single_error, measured.adjusted(name).standard_error)
        assert abs(measured.adjusted(name).mean - printed.value) < 3 * error + printed.rounding, name
        gap = measured.difference("bayes", name)
        assert gap.mean < 0 or noise == "uniform(0,0)", name
    return measured.adjusted("bayes")


@pytest.mark.usefixtures("quick_tuning")
@pytest.mark.parametrize("noise", ["uniform(0,0)", "uniform(0,1)", "uniform(0,5)", "choice(1,3)"])
def test_baselines_of_table_1(noise, getkey):
    _check_column(noise, 50_000, getkey())


@pytest.mark.slow
@pytest.mark.parametrize("noise", paper.NOISES)
def test_all_baselines_of_table_1_on_a_million_sequences(noise, getkey):
    floor = _check_column(noise, 1_000_000, getkey())
    known_floors = {"uniform(0,5)": 0.0390, "choice(1,3)": 0.0057}
    if noise in known_floors:
        assert floor.mean == pytest.approx(known_floors[noise], abs=4 * floor.standard_error)


@pytest.mark.parametrize(
    ("method", "protocol", "verdict"),
    [
        ("full", (0.040, 0.039, 0.041), "below"),
        ("full", (0.048, 0.047, 0.049), "level"),
        ("full", (0.0472, 0.0470, 0.0474), "level"),
        ("full", (0.050, 0.0476, 0.051), "above"),
        ("gd++", (0.362, 0.359, 0.365), "floor"),
        ("gd++", (0.370, 0.368, 0.375), "floor"),
    ],
)
def test_cells_are_compared_by_the_protocol_repeated(method, protocol, verdict):
    printed = paper.printed_table1()[method, 7, "uniform(0,5)"]
    floor = 0.36145 if method == "gd++" else 0.0
    assert paper.verdict(ProtocolQuantiles(*protocol), printed, floor) == verdict
