"""The lists that tests run over, each in one place."""

import jax
import jax.numpy as jnp
import numpy as np

from lintra.baselines import AdaptiveRidge, Bayes, ConstantRidge, IterativeRidge, LeastSquares, TunedRidge
from lintra.models import FAMILIES, Rescaled

DIM, NUM_EXAMPLES = 4, 9
KEY = jax.random.key(17)


def _model(family, num_layers, num_heads):
    return family.random(num_layers, dim=DIM, num_examples=NUM_EXAMPLES, num_heads=num_heads, scale=0.3, key=KEY)


MODELS = {
    f"{family.family}-{num_layers}-h{num_heads}": _model(family, num_layers, num_heads)
    for family in FAMILIES.values()
    for num_layers in (1, 4)
    for num_heads in (1, 2, 3)
}

BASELINES = {
    "ols": LeastSquares(),
    "const-ridge": ConstantRidge(jnp.asarray(2.0)),
    "ada-ridge": AdaptiveRidge(),
    "tuned-ridge": TunedRidge(jnp.asarray(1.3), jnp.asarray(4.0)),
    "iterative-ridge": IterativeRidge(20),
    "iterative-ridge-trace": IterativeRidge(20, num_squarings=0),
    "bayes-uniform": Bayes("uniform(0,5)"),
    "bayes-choice": Bayes("choice(1,3)"),
}

PREDICTORS = MODELS | BASELINES | {"rescaled": Rescaled(MODELS["diag-4-h1"])}

ROTATION_EQUIVARIANT = {name: value for name, value in PREDICTORS.items() if not name.startswith("full")}


def random_rotation(rng: np.random.Generator, dim: int) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(dim, dim)))
    return q * np.sign(np.diag(r))
