import numpy as np
import pytest

from anatomy_helpers import KEY, small
from lintra import NoisyRegression
from lintra.anatomy import damped_layers
from lintra.models.damping import Damping
from lintra.models.thresholds import measure_damping


@pytest.fixture(scope="module")
def model():
    return small("full", scale=0.1)


@pytest.fixture(scope="module")
def problem(model):
    return NoisyRegression(model.dim, model.num_examples, "uniform(0,2)")


def test_a_tenth_of_the_sequences_is_outside_of_thresholds_at_the_quantile_0_9(model, problem):
    damping = measure_damping(model, problem, quantile=0.9, key=3)
    rows = damped_layers(model.with_damping(damping), problem, num_sequences=20_000, key=KEY)
    assert [row["layer"] for row in rows] == ["context", *range(1, model.num_layers + 1)]
    context, *layers = rows
    assert len(layers) == model.num_layers
    for row in (context, *layers[1:]):
        share, error = row["damped_share"], row["standard_error"]
        assert error == pytest.approx((share * (1 - share) / 20_000) ** 0.5)
        # By the trace of the context, or by the norm in a layer, on a tenth; by its norm, or by labels, on as many
        # or fewer.
        assert 0.1 - 5 * error < share < 0.2 + 5 * error
        assert row["inputs_median"] < 1 < row["inputs_99"] <= row["largest_divisor"]
    assert layers[0]["damped_share"] < context["damped_share"]  # most contexts outside are scaled
    np.testing.assert_allclose([row["rho"] for row in layers], damping.rho)
    np.testing.assert_allclose([row["kappa"] for row in layers], damping.kappa)
    assert context["rho"] == pytest.approx(float(damping.trace))
    assert context["kappa"] is None


def test_stored_thresholds_are_used_and_labels_without_a_threshold_have_no_ratio(model, problem):
    damping = Damping(np.full(model.num_layers, 1e9))
    rows = damped_layers(model.store_damping(damping), problem, num_sequences=100, key=KEY)
    assert all(row["damped_share"] == 0 and row["largest_divisor"] == 1 for row in rows)
    assert all(row["kappa"] is None and row["labels_99"] is None for row in rows)


def test_labels_alone_can_damp_a_layer(model, problem):
    thresholds = np.full(model.num_layers, 1e9)
    damped = model.with_damping(Damping(thresholds, thresholds * 1e-12))
    rows = damped_layers(damped, problem, num_sequences=100, key=KEY)
    assert rows[0]["damped_share"] == 0
    assert rows[1]["damped_share"] == 1
    assert rows[1]["labels_median"] > 1e3


def test_a_model_without_thresholds_has_no_rows(model, problem):
    assert damped_layers(model, problem) == []
