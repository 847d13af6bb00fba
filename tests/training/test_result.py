import numpy as np

from lintra.models import Diagonal
from lintra.training import assess
from training_helpers import KEY, SPEC


def test_a_model_owned_by_exploding_sequences_is_not_called_trained():
    p, q = np.asarray([[[-2.0, -1.0]]] * 5), np.asarray([[[0.5, 0.1]]] * 5)
    result = assess(Diagonal(p, q, 6, 3), SPEC.problem, num_sequences=20_000, key=KEY)
    assert "the model diverges on rare sequences and is not sound" in result.message
    assert not result.is_sound
    sound = assess(Diagonal(0 * p, q, 6, 3), SPEC.problem, num_sequences=20_000, key=KEY)
    assert (sound.is_sound, sound.message) == (True, "")
