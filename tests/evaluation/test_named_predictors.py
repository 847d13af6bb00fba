import jax
import numpy as np
import pytest

from evaluation_helpers import PROBLEM, TWO
from lintra import save, zoo
from lintra.baselines import AdaptiveRidge, LeastSquares
from lintra.evaluation.adjusted_loss import evaluate
from lintra.models import Diagonal, Full


def test_names_keep_the_order_they_were_given_in(getkey):
    predictors = {"z": LeastSquares(), "a": AdaptiveRidge(), "m": LeastSquares()}
    assert list(evaluate(predictors, PROBLEM, num_sequences=10, key=getkey()).names) == ["z", "a", "m"]


def test_what_cannot_be_measured_is_rejected(getkey):
    for wrong in (3, {"mine": 3}, [LeastSquares(), None], {3: LeastSquares()}):
        with pytest.raises(TypeError, match="`predictors` must be a predictor, a name such as 'bayes'"):
            evaluate(wrong, PROBLEM, key=getkey())  # pyright: ignore[reportArgumentType]
    for none in ({}, []):
        with pytest.raises(ValueError, match="`predictors` must have at least one"):
            evaluate(none, PROBLEM)
    with pytest.raises(ValueError, match="`predictors` has 'LeastSquares' twice"):
        evaluate([LeastSquares(), LeastSquares()], PROBLEM)
    with pytest.raises(ValueError, match="must not use the name 'oracle'"):
        evaluate({"oracle": LeastSquares()}, PROBLEM, key=getkey())
    with pytest.raises(ValueError, match="must come in layers for `every_layer=True`, got LeastSquares"):
        evaluate(LeastSquares(), PROBLEM, every_layer=True, key=getkey())


def test_one_predictor_needs_no_name_and_several_do(getkey):
    alone = evaluate(LeastSquares(), PROBLEM, num_sequences=100)
    assert alone.names == ("LeastSquares",)
    assert alone.adjusted() == alone.adjusted("LeastSquares")
    assert np.array_equal(alone.losses(), evaluate(TWO, PROBLEM, num_sequences=100, key=0).losses("ols"))
    for name in (None, "mine"):
        with pytest.raises(ValueError, match=f"`name` must be one of ols, ada, got {name!r}"):
            evaluate(TWO, PROBLEM, num_sequences=10).adjusted(name)
    model = Full.random(2, dim=4, num_examples=9, key=getkey())
    assert evaluate([model, "ols"], PROBLEM, num_sequences=10).names == ("full-2", "ols")


def test_a_model_given_by_name_is_measured_on_its_own_problem(tmp_path, getkey):
    named = evaluate("gd++-2-choice(1,3)", num_sequences=100, key=3)
    assert str(named.problem) == "NoisyRegression(dim=10, num_examples=20, noise='choice(1,3)')"
    given = evaluate(
        {"m": zoo.load("gd++-2-choice(1,3)")}, named.problem, num_sequences=100, key=jax.random.key(3)
    )
    assert np.array_equal(named.losses(), given.losses("m"))
    beside = evaluate(["gd++-2-choice(1,3)", "ada-ridge"], num_sequences=100, key=3)
    assert np.array_equal(beside.losses("gd++-2-choice(1,3)"), named.losses())
    save(Diagonal.random(1, dim=4, num_examples=9, key=getkey()), tmp_path / "m.safetensors")
    for unknown in ("bayes", LeastSquares(), str(tmp_path / "m.safetensors")):
        with pytest.raises(ValueError, match="`problem` must be given, as in"):
            evaluate(unknown)
    with pytest.raises(ValueError, match="`problem` must be given, since models were trained on different ones"):
        evaluate(["gd++-2-choice(1,3)", "gd++-2-uniform(0,5)"])
