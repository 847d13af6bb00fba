from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lintra.training.descent.rollback import Rollback
from training_helpers import KEY, QUICK, SPEC

pytestmark = pytest.mark.usefixtures("short_rounds")


def test_a_model_that_is_stuck_is_rolled_back_and_resumes():
    stage = replace(QUICK.stages(SPEC, KEY)[0], num_steps=200, rollback=Rollback(3.0))
    data = stage.prepare()
    state = stage.advance(stage.start({}), data)
    explode = jax.tree.map(lambda leaf: jnp.full_like(leaf, 1e20), state.models)
    lost = replace(state, step=jnp.asarray(100), models=explode)
    after = stage.advance(lost, data)
    assert after.num_rejected.tolist() == [count + 100 for count in state.num_rejected.tolist()]
    assert not after.stopped
    assert eqx.tree_equal(after.models, state.best)
    assert after.rate.tolist() == [1.0] * len(after.rate)
    assert after.num_rollbacks.tolist() == [count + 1 for count in state.num_rollbacks.tolist()]


def test_a_model_that_diverges_is_rolled_back_to_its_best():
    recipe = replace(QUICK, num_steps=200, learning_rate=0.3)
    stage = replace(recipe.stages(SPEC, KEY)[0], rollback=Rollback(3.0))
    data = stage.prepare()
    state = stage.advance(stage.start({}), data)
    losses = jax.vmap(data[1].loss)(state.models)
    assert (np.asarray(losses) <= 3 * np.asarray(state.best_loss)).all()
    assert int(state.num_rollbacks.sum()) > 0
