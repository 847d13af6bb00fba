from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lintra.models import FAMILIES
from lintra.training import WarmStarts
from lintra.training.starts import RandomAndWarmStarts, RandomStarts
from training_helpers import KEY, SPEC


def test_a_shallower_model_starts_with_a_small_layer_at_three_places():
    shallower = FAMILIES["full"].random(2, dim=3, num_examples=6, scale=0.5, key=KEY)
    spec = replace(SPEC, family="full", num_layers=3)
    starts = RandomAndWarmStarts(RandomStarts(spec, 2, scale=0.1), perturbation=1e-9)
    models: Any = starts({}, WarmStarts(shallower=shallower), KEY)
    gram = jnp.cov(jax.random.normal(KEY, (4, 9)))
    finals = jax.vmap(lambda model: model.final_weights(gram))(models)
    assert finals.shape == (5, 3)
    assert np.allclose(finals[2:], shallower.final_weights(gram), atol=1e-6)
    gaps = [np.abs(np.asarray(models.p[start])).max(axis=(1, 2, 3)).argmin() for start in (2, 3, 4)]
    assert gaps == [0, 1, 2]
