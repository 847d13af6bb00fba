"""Small models and contexts that tests of the anatomy share."""

import jax

from lintra import NoisyRegression, sample_statistics
from lintra.models import FAMILIES

KEY = jax.random.key(0)


def small(family, num_heads=1, num_layers=3, scale=0.3):
    return FAMILIES[family].random(num_layers, dim=4, num_examples=8, num_heads=num_heads, scale=scale, key=KEY)


def contexts(count=50, dim=4, num_examples=8, noise="uniform(0,2)"):
    return sample_statistics(NoisyRegression(dim, num_examples, noise), (count,), key=KEY)[0]
