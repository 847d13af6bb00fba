import jax

from lintra import NoisyRegression, evaluate
from lintra.baselines import AdaptiveRidge, Bayes
from lintra.evaluation.bayes_excess import excess
from untrained_zoo import untrained_model


def test_excess_is_the_loss_above_the_bayes_predictors():
    problem = NoisyRegression(noise="choice(1,3)")
    methods = {"ada-ridge": AdaptiveRidge(), "gd++": untrained_model("gd++", 2), "bayes": Bayes(problem.noise)}
    above = excess(methods, problem, num_sequences=60_000, key=jax.random.key(0))
    measured = evaluate(methods, problem, num_sequences=60_000, key=jax.random.key(1))
    assert above["bayes"].mean == 0.0
    for name in ("ada-ridge", "gd++"):
        gap = measured.difference(name, "bayes")
        error = (gap.standard_error**2 + above[name].standard_error ** 2) ** 0.5
        assert abs(gap.mean - above[name].mean) < 4 * error
    assert above["ada-ridge"].standard_error < measured.difference("ada-ridge", "bayes").standard_error
