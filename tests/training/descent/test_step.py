from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.models import Diagonal
from training_helpers import KEY, QUICK, SPEC

pytestmark = pytest.mark.usefixtures("short_rounds")


def test_bad_steps_are_rejected_and_counted_and_do_not_touch_other_starts():
    def starts(models, warm_starts, key):
        good = Diagonal.random(2, dim=3, num_examples=6, scale=0.05, key=key)
        exploding = jax.tree.map(lambda leaf: jnp.full_like(leaf, 1e20), good)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), good, exploding)

    stage = replace(QUICK.stages(SPEC, KEY)[0], starts=starts, num_steps=100)
    state = stage.advance(stage.start({}), stage.prepare())
    assert state.num_rejected.tolist()[1] == 100
    assert state.num_rejected.tolist()[0] < 5
    assert np.array_equal(state.models.p[1], np.full((2, 1, 2), 1e20, np.float32))
    assert np.isfinite(state.best_loss[0])
    assert np.isinf(state.best_loss[1])
