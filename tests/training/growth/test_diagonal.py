from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from lintra import NoisyRegression, evaluate
from lintra.models import GDPlusPlus
from lintra.models.spec import ModelSpec
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.warm_starts import WarmStarts
from training_helpers import KEY, grow


def test_a_warm_start_is_tried_at_the_last_depth():
    spec = ModelSpec("diag", 2, NoisyRegression(3, 6, "choice(1,3)"))
    smaller, _ = grow(GDPlusPlusGrowth("gd++", KEY, spec))
    assert isinstance(smaller, GDPlusPlus)
    stage = DiagonalGrowth("diag", KEY, spec, num_validation=8192)
    assert np.array_equal(stage.start({}, WarmStarts(smaller=smaller)).warm_starts[0, ..., :2], smaller.rates)
    model, losses = grow(stage, smaller=smaller)
    measured = evaluate({"diag": model, "gd++": smaller}, spec.problem, num_sequences=50_000, key=KEY)
    better = measured.difference("diag", "gd++")
    assert better.mean < -4 * better.standard_error
    assert losses[1] < losses[0]


def test_two_heads_start_from_one_and_are_never_worse():
    spec = ModelSpec("diag", 2, NoisyRegression(3, 6, "choice(1,3)"))
    one, (*_, loss) = grow(DiagonalGrowth("diag", KEY, spec, num_validation=8192))
    both = replace(spec, num_heads=2)
    stage = DiagonalGrowth("diag", KEY, both, num_validation=8192)
    gram = jnp.cov(jax.random.normal(KEY, (4, 9)))
    spread = stage.from_parameters(stage.start({}, WarmStarts(fewer_heads=one)).warm_starts[0])
    assert spread.num_heads == 2
    np.testing.assert_allclose(spread.final_weights(gram), one.final_weights(gram), rtol=1e-12)
    _, losses = grow(stage, fewer_heads=one)
    assert losses[-1] < 1.001 * loss
