"""The gate judges models as used, as printed and in 32 bits, and equal models once."""

import numpy as np
import pytest

from lintra import NoisyRegression
from lintra.evaluation import safety
from lintra.evaluation.safety import SEED, GateCounts
from lintra.models import GDPlusPlus
from lintra.models.damping import Damping
from lintra.models.thresholds import measure_damping
from lintra.sweep import gate
from lintra.sweep.gate import GateResult, judge_models

PROBLEM = NoisyRegression(3, 6, "uniform(0,2)")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(safety, "block_size", lambda dim: 64)


def steps(rate):
    """Three steps along the gradient, which diverge on long inputs if they are long, with low thresholds."""
    model = GDPlusPlus(np.full((3, 1, 2), [0.0, rate]), 6, 3)
    thresholds = measure_damping(model, PROBLEM)
    return model.store_damping(Damping(0.2 * thresholds.rho, thresholds.kappa, 0.2 * thresholds.trace))


def test_damping_is_what_makes_a_model_safe():
    results = judge_models({"long": steps(-1.2), "short": steps(-0.1)}, PROBLEM, num_sequences=640)
    long, short = results["long"], results["short"]
    assert (long.used.is_safe, long.printed.is_safe, long.single.is_safe) == (True, False, True)
    assert (short.used.is_safe, short.printed.is_safe) == (True, True)
    assert long.used.worst < 15 < long.printed.worst
    assert long.used.total != long.single.total
    np.testing.assert_allclose(long.used.total, long.single.total, rtol=1e-4)
    card = long.to_card()
    assert (card["safe"], card["float32_safe"], card["printed_safe"]) == (True, True, False)
    assert card["printed_num_exploded"] == long.printed.num_exploded > 0
    assert (card["num_exploded"], card["gate_sequences"], card["gate_seed"]) == (0, 640, SEED)


def test_a_model_without_thresholds_is_used_as_printed():
    model = GDPlusPlus(np.full((3, 1, 2), [0.0, -1.2]), 6, 3)
    result = judge_models({"model": model}, PROBLEM, num_sequences=640)["model"]
    assert result.used == result.printed
    assert not result.to_card()["safe"]


def test_models_of_equal_weights_are_computed_once_and_have_the_same_counts(monkeypatch):
    computed = []

    def count(models, *args, **settings):
        computed.extend(models)
        return dict.fromkeys(models, GateCounts(10))

    monkeypatch.setattr(gate, "count_explosions", count)
    results = judge_models({"a": steps(-1.2), "b": steps(-1.2), "c": steps(-0.1)}, PROBLEM)
    assert sorted(computed) == sorted(f"{name} {form}" for name in "ac" for form in gate._FORMS)
    assert results == dict.fromkeys("abc", GateResult(*[GateCounts(10)] * 3, seed=SEED))


def test_counts_are_resumed_for_the_same_models_and_begin_anew_for_others(tmp_path):
    few = judge_models({"model": steps(-1.2)}, PROBLEM, num_sequences=128, state_folder=tmp_path)
    more = judge_models({"model": steps(-1.2)}, PROBLEM, num_sequences=640, state_folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert more == judge_models({"model": steps(-1.2)}, PROBLEM, num_sequences=640) != few
    other = judge_models({"model": steps(-1.1)}, PROBLEM, num_sequences=640, state_folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert other["model"].printed != more["model"].printed
