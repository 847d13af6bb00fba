import jax

from lintra.training.validation import sample_validation
from training_helpers import MODEL, PROBLEM


def test_validation_loss_is_the_adjusted_loss():
    from lintra import evaluate

    validation = sample_validation(PROBLEM, num_sequences=30_000, key=jax.random.key(5))
    measured = evaluate({"m": MODEL}, PROBLEM, num_sequences=100_000, key=jax.random.key(6)).adjusted("m")
    assert abs(float(validation.loss(MODEL)) - measured.mean) < 5 * measured.standard_error
