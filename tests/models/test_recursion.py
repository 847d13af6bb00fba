import jax.numpy as jnp

from lintra.models import tokens
from lintra.statistics.gram import GramStatistics
from models_helpers import close


def test_the_gram_recursion_is_the_token_by_token_pass_in_every_layer(model, sequence):
    x, y, query = sequence
    P, Q = map(jnp.asarray, model.matrices())
    history = tokens.forward(P, Q, x, y, query)
    weights = model.layer_weights(GramStatistics.from_data(x, y))
    assert close(weights @ query, jnp.stack([-layer[-1, -1] for layer in history]))
    assert close(model.weights(GramStatistics.from_data(x, y)), weights[-1])


def test_theorem_4_1_reproduces_every_token(model, sequence):
    x, y, query = sequence
    P, Q = map(jnp.asarray, model.matrices())
    history = tokens.forward(P, Q, x, y, query)
    implicit = model.implicit(GramStatistics.from_data(x, y))
    for layer, moved in enumerate(history):
        M, u, w, a = (value[layer] for value in (implicit.M, implicit.u, implicit.w, implicit.a))
        assert close(x @ M.T + y[:, None] * u, moved[:-1, :-1])
        assert close(a * y - x @ w, moved[:-1, -1])
        assert close(M @ query, moved[-1, :-1])
        assert close(-w @ query, moved[-1, -1])
