"""Small models and contexts that tests of the anatomy share."""

import jax
import numpy as np

from lintra import NoisyRegression, sample_statistics
from lintra.anatomy import OMEGAS, behaviour, omegas
from lintra.models import FAMILIES, Diagonal

KEY = jax.random.key(0)


def small(family, num_heads=1, num_layers=3, scale=0.3):
    return FAMILIES[family].random(num_layers, dim=4, num_examples=8, num_heads=num_heads, scale=scale, key=KEY)


def contexts(count=50, dim=4, num_examples=8, noise="uniform(0,2)"):
    return sample_statistics(NoisyRegression(dim, num_examples, noise), (count,), key=KEY)[0]


def from_omegas(*layers, num_examples=20, dim=10):
    """DIAG with these ω as printed, each layer as (xx, xy, yx, yy); two heads hold four free numbers."""
    omega = num_examples * np.asarray(layers, float).reshape(-1, 2, 2)
    p = np.stack([omega[:, :, 0], omega[:, :, 1]], axis=1)
    q = np.broadcast_to(np.eye(2), (len(omega), 2, 2))
    return Diagonal(p, q, num_examples, dim)


def rows_of(model, noise_stds=(1.0, 5.0)):
    """Tables of ω and of behaviour."""
    omega_rows = [
        {"layer": layer, **dict(zip(OMEGAS, row, strict=True))} for layer, row in enumerate(omegas(model), 1)
    ]
    return omega_rows, behaviour(model, noise_stds, key=KEY)
