import jax
import numpy as np

from lintra.baselines.bayes import Bayes
from lintra.evaluation.adjusted_loss import evaluate
from lintra.experiments.descents import bayes_losses, excess_losses, named_estimate
from lintra.models import Diagonal
from lintra.problem.noisy_regression import NoisyRegression

PROBLEM = NoisyRegression(2, 6, "choice(1,3)")


def test_excess_and_floor_add_up_to_the_adjusted_loss_of_other_sequences():
    models = [Diagonal.random(1, dim=2, num_examples=6, scale=0.3, key=jax.random.key(k)) for k in (0, 1)]
    settings = {"num_sequences": 16_384, "key": jax.random.key(7)}
    losses, floor = excess_losses(models, PROBLEM, **settings), bayes_losses(PROBLEM, **settings)
    assert losses.shape == (2, 16_384)
    measured = evaluate({"0": models[0], "1": models[1], "bayes": Bayes(PROBLEM.noise)}, PROBLEM, key=3)
    for number, name in enumerate("01"):
        found, expected = named_estimate("loss", losses[number] + floor), measured.adjusted(name)
        error = np.hypot(found["loss_error"], expected.standard_error)
        assert abs(found["loss"] - expected.mean) < 4 * error
    assert abs(floor.mean() - measured.adjusted("bayes").mean) < 4 * np.hypot(
        floor.std() / 128, measured.adjusted("bayes").standard_error
    )
